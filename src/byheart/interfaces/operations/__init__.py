"""Define the operations that MCP and REST offer, who may call them, and in which form."""

from byheart.interfaces.operations.grants import LOGIN, Forbidden, Grant
from byheart.interfaces.operations.table import (
    OPERATIONS,
    OnProgress,
    Operation,
    Parameter,
    carry_out,
    narrow,
    perform,
    perform_many,
)

__all__ = [
    "LOGIN",
    "OPERATIONS",
    "Forbidden",
    "Grant",
    "OnProgress",
    "Operation",
    "Parameter",
    "carry_out",
    "narrow",
    "perform",
    "perform_many",
]
