"""Offer numpy as `np`, imported when it is first used.

Importing numpy takes a third of the time of a short command, and many commands and hooks use no
array. The engine's modules take `np` and `NDArray` from here, and quote element types that are
evaluated when a module is loaded: `Mask = NDArray["np.bool_"]`.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any


class _LateNumpy(ModuleType):
    """Become numpy when the first name is looked up."""

    def __getattr__(self, name: str) -> Any:
        import numpy

        # From now on this is a module with numpy's names, as fast as numpy itself.
        self.__dict__.update(vars(numpy))
        self.__class__ = ModuleType  # type: ignore[assignment]
        return getattr(self, name)


class _LateArray:
    """Stand for `numpy.typing.NDArray`, which is only for type checkers."""

    def __class_getitem__(cls, element: object) -> Any:
        return Any


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np, NDArray = _LateNumpy("numpy"), _LateArray

__all__ = ["NDArray", "np"]
