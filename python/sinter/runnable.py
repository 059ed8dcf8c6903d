"""What takes arrays and gives arrays: a compiled model, alone or as one of a pipeline."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Sequence

import numpy as np

from .errors import UsageError


class Runnable:
    """The tensors of a compiled net, and how arguments become a list in their order."""

    name: str
    input_names: List[str]
    output_names: List[str]

    def _set_tensors(self, inputs: List[Dict[str, Any]], outputs: List[Dict[str, Any]]) -> None:
        self._inputs, self._outputs = inputs, outputs
        self.input_names = [t["name"] for t in inputs]
        self.output_names = [t["name"] for t in outputs]

    def _run(self, inputs: Sequence[Any], run_list: Callable[[Sequence[Any]], List[np.ndarray]]) -> Any:
        if len(inputs) == 1 and isinstance(inputs[0], Mapping):
            return dict(zip(self.output_names, run_list(self._by_name(inputs[0]))))
        results = run_list(inputs)
        return results[0] if len(results) == 1 else tuple(results)

    def _check_count(self, inputs: Sequence[Any]) -> None:
        if len(inputs) != len(self._inputs):
            raise UsageError(f"{self.name} takes {len(self._inputs)} inputs ({self.input_names}), not {len(inputs)}")

    def _by_name(self, given: Mapping[str, Any]) -> List[Any]:
        unknown = [name for name in given if name not in self.input_names]
        missing = [name for name in self.input_names if name not in given]
        if unknown or missing:
            what = f"no input {unknown[0]!r}" if unknown else f"nothing for the input {missing[0]!r}"
            raise UsageError(f"{what}; the inputs are {self.input_names}")
        return [given[name] for name in self.input_names]


def with_labels(tensor: Mapping[str, Any], array: np.ndarray) -> np.ndarray:
    """An output whose numbers stand for text as that text."""
    names = tensor.get("names")
    if not names or tensor["dtype"] != "int64":  # names of columns, for floats
        return array
    texts: np.ndarray = np.asarray(names, object)[array]
    return texts
