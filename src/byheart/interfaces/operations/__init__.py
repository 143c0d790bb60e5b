"""What may be asked at a door, by whom, and in which form: one table for MCP and REST."""

from byheart.interfaces.operations.grants import Forbidden, Grant
from byheart.interfaces.operations.table import (
    OPERATIONS,
    Operation,
    Parameter,
    carry_out,
    narrow,
    perform,
    perform_many,
)

__all__ = [
    "OPERATIONS",
    "Forbidden",
    "Grant",
    "Operation",
    "Parameter",
    "carry_out",
    "narrow",
    "perform",
    "perform_many",
]
