"""sinter as a backend of ONNX: what ``onnx.backend.test`` runs.

>>> import onnx.backend.test, sinter.backend
>>> tests = onnx.backend.test.BackendTest(sinter.backend, __name__)

A model is compiled for the extents of the inputs that it is run on, once for each set of them: ONNX's tests leave
extents free that sinter wants a bound of.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
import onnx
from onnx.backend import base

from .errors import ModelError
from .model import Model, compile

_Signature = Tuple[Tuple[str, Tuple[int, ...]], ...]


class SinterRep(base.BackendRep):
    """A model that is compiled when its inputs' extents are known."""

    def __init__(self, model: onnx.ModelProto, **options: Any) -> None:
        self._model = model
        self._options = options
        initialized = {t.name for t in model.graph.initializer}
        initialized |= {t.values.name for t in model.graph.sparse_initializer}
        self._inputs = [i for i in model.graph.input if i.name not in initialized]
        self._compiled: Dict[_Signature, Model] = {}
        if all(_is_fixed(i) for i in self._inputs):
            self._compiled_for(())

    def run(self, inputs: Any, **kwargs: Any) -> Tuple[Any, ...]:
        """Runs the model on arrays in its order (or a dict of them); returns its outputs in its order."""
        if isinstance(inputs, dict):
            inputs = [inputs[i.name] for i in self._inputs]
        elif isinstance(inputs, np.ndarray):
            inputs = [inputs]
        model = self._compiled_for(tuple(_shapes_of(self._inputs, inputs)))
        # Inputs that nothing needs are gone.
        given = {i.name: value for i, value in zip(self._inputs, inputs)}
        return tuple(model.run_list([given[name] for name in model.input_names]))

    def _compiled_for(self, shapes: _Signature) -> Model:
        if shapes not in self._compiled:
            self._compiled[shapes] = compile(_with_extents(self._model, dict(shapes)), **self._options)
        return self._compiled[shapes]


def _is_fixed(value: onnx.ValueInfoProto) -> bool:
    tensor = value.type.tensor_type
    return not tensor.HasField("shape") or all(d.HasField("dim_value") for d in tensor.shape.dim)


def _with_extents(model: onnx.ModelProto, shapes: Dict[str, Tuple[int, ...]]) -> onnx.ModelProto:
    """The model with these extents where its inputs leave them free, as ``sinter run`` takes them of its files."""
    if not shapes:
        return model
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for value in fixed.graph.input:
        if value.name not in shapes:
            continue
        for dim, extent in zip(value.type.tensor_type.shape.dim, shapes[value.name]):
            if not dim.HasField("dim_value"):
                dim.dim_value = extent
    return fixed


def _shapes_of(inputs: Sequence[onnx.ValueInfoProto], arrays: Sequence[Any]) -> List[Tuple[str, Tuple[int, ...]]]:
    return [(i.name, np.shape(a)) for i, a in zip(inputs, arrays) if not _is_fixed(i)]


class SinterBackend(base.Backend):
    """``prepare``, ``run_model``, ``run_node`` and ``supports_device`` of ``onnx.backend.base.Backend``.

    Keyword arguments are those of ``sinter.compile``: ``prepare(model, target="cortex-a76")`` runs under qemu.
    """

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the model is one that sinter takes: its extents may still have to be given."""
        try:
            cls.prepare(model, device, **kwargs)
        except ModelError:
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> SinterRep:
        """Compiles the model, or leaves that to the first run where extents are free.

        Raises ``sinter.ModelError`` where it is refused.
        """
        super().prepare(model, device, **kwargs)
        return SinterRep(model, **kwargs)

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> Tuple[Any, ...]:
        """Compiles the model and runs it once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Optional[Sequence[Tuple[np.dtype, Tuple[int, ...]]]] = None,
        **kwargs: Any,
    ) -> Tuple[Any, ...]:
        """Runs one node on arrays in its order (absent ones left out), as a model of its own."""
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        names = [name for name in dict.fromkeys(node.input) if name]
        arrays = [inputs[n] for n in names] if isinstance(inputs, dict) else [np.asarray(a) for a in inputs]
        values = [
            onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in zip(names, arrays)
        ]
        graph = onnx.helper.make_graph([node], node.op_type, values, _outputs_of(node, values, opset, outputs_info))
        model = onnx.helper.make_model(graph, opset_imports=_opsets(node, opset))
        return cls.prepare(model, device, **kwargs).run(dict(zip(names, arrays)))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Only "CPU"."""
        return device == "CPU"


def _opsets(node: onnx.NodeProto, opset: int) -> List[onnx.OperatorSetIdProto]:
    return [onnx.helper.make_opsetid(node.domain, opset if not node.domain else 1)]


def _outputs_of(
    node: onnx.NodeProto, inputs: Sequence[onnx.ValueInfoProto], opset: int, given: Any
) -> List[onnx.ValueInfoProto]:
    names = [name for name in node.output if name]
    if given is not None:
        return [
            onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
            for n, (dtype, shape) in zip(names, given)
        ]
    bare = onnx.helper.make_graph([node], node.op_type, inputs, [onnx.ValueInfoProto(name=n) for n in names])
    model = onnx.helper.make_model(bare, opset_imports=_opsets(node, opset))
    return list(onnx.shape_inference.infer_shapes(model).graph.output)


is_compatible = SinterBackend.is_compatible
prepare = SinterBackend.prepare
run_model = SinterBackend.run_model
run_node = SinterBackend.run_node
supports_device = SinterBackend.supports_device
