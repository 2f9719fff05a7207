"""Functions that kernels call and that are compiled as a part of them only.

numba optimises a function and makes machine code of it before it links it into its callers, all of which is then done once
more for these. Where much is called this takes as long as the kernel itself. A routine is handed to its callers as numba
writes it, and optimised once, there.
"""

from functools import partial
from typing import Any

from numba import njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _Part(JITCodeLibrary):
    """The code of a function as numba writes it, to be linked into others; calls of it stay calls."""

    attributes: tuple[str, ...] = ("noinline",)

    def add_ir_module(self, ir_module: Any) -> None:
        """Take up code, and say in it how it is to be optimised later."""
        for function in ir_module.functions:
            if not function.is_declaration:
                for attribute in self.attributes:
                    function.attributes.add(attribute)
        super().add_ir_module(ir_module)

    def _optimize_final_module(self) -> None:
        """Leave this to those that the code is linked into."""

    def _finalize_final_module(self) -> None:
        """Make no machine code."""
        self._finalized = True


class _ShortPart(_Part):
    """Code that is to be short rather than fast: no loop in it is unrolled."""

    attributes = ("noinline", "optsize")


class _Routine(Compiler):
    """Compiles a function to a `_Part`."""

    part: type[_Part] = _Part

    def compile_extra(self, func: Any) -> Any:
        """Compile a function of Python."""
        state = self.state
        state.library, state.flags.no_compile = self.part(state.targetctx.codegen(), func.__qualname__), True
        result = super().compile_extra(func)
        # Callers find the code by its entry for Python, which is never entered but has to be a builtin: here the library's.
        entry = result.library.__sizeof__
        state.targetctx.insert_user_function(entry, result.fndesc, [result.library])
        return result._replace(entry_point=entry)


class _ShortRoutine(_Routine):
    """Compiles a function to a `_ShortPart`."""

    part = _ShortPart


_decorated = partial(njit, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)

routine = _decorated(pipeline_class=_Routine)
"""Compile a function as a part of the kernels that call it, and not by itself; Python never does."""

short_routine = _decorated(pipeline_class=_ShortRoutine)
"""Compile a routine to short code, in less time: for one that has little to do, or seldom something."""
