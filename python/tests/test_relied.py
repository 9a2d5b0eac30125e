"""Names that other libraries do not promise to keep: without one, an error gives library, version and
name."""

import importlib
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest

from antinoise import _relied
from antinoise._relied import TESTED, relied

# Library, module of antinoise that uses the name at import, module of the library, name.
AT_IMPORT = [
    ("torch", "antinoise.torch.relied", "torch.utils._pytree", "tree_leaves"),
    ("torch", "antinoise.torch.relied", "torch.utils._pytree", "tree_map"),
    ("torch", "antinoise.torch.relied", "torch.utils.weak", "WeakTensorKeyDictionary"),
    ("torch", "antinoise.torch.relied", "torch.optim.optimizer", "register_optimizer_step_pre_hook"),
    ("torch", "antinoise.torch.relied", "torch.nn.modules.batchnorm", "_BatchNorm"),
    ("torch", "antinoise.torch.relied", "torch.nn.modules.batchnorm", "_NormBase"),
    ("jax", "antinoise.jax.clipping", "jax.core", "Tracer"),
    ("jax", "antinoise.jax.clipping", "jax", "enable_x64"),
    ("jax", "antinoise.jax.noise", "jax.experimental.multihost_utils", "process_allgather"),
    ("jax", "antinoise.jax.transforms", "jax.experimental", "io_callback"),
    ("flwr", "antinoise.flower.strategy", "flwr.supercore", "log"),
]


def message(library, where, name):
    return (
        re.escape(f"{library} {metadata.version(library)} has no {where}.{name}, which antinoise relies on")
        + ".*"
        + re.escape(TESTED[library])
    )


@pytest.mark.parametrize("library, module, owner, name", AT_IMPORT)
def test_a_release_without_a_name_is_refused_at_import(library, module, owner, name, monkeypatch):
    pytest.importorskip(library)
    try:
        own = importlib.import_module(module)
    except ModuleNotFoundError as missing:
        pytest.skip(str(missing))
    # Names that a module creates on first access.
    monkeypatch.setattr(importlib.import_module(owner), "__getattr__", _nothing, raising=False)
    monkeypatch.delattr(importlib.import_module(owner), name)
    monkeypatch.delitem(sys.modules, module)
    parent, _, last = module.rpartition(".")
    try:
        with pytest.raises(RuntimeError, match=message(library, owner, name)):
            importlib.import_module(module)
    finally:
        # The module is restored, also as an attribute of its package.
        setattr(sys.modules[parent], last, own)


def _nothing(name):
    raise AttributeError(name)


def test_a_module_that_is_gone_is_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match=message("torch", "torch.gone", "name")):
        relied("torch", "torch.gone", "name")
    assert (
        relied("torch", torch, "Tensor") is torch.Tensor
        and relied("torch", "torch.nn", "Linear") is torch.nn.Linear
    )


class Without:
    """An object without some of its attributes."""

    def __init__(self, of, name):
        self._of, self._name = of, name

    def __getattr__(self, name):
        if name == self._name:
            raise AttributeError(name)
        return getattr(self._of, name)


def test_names_of_pytorch_are_asserted_where_they_are_used(monkeypatch):
    torch = pytest.importorskip("torch")
    from antinoise.torch.optimizer_guard import has_hook
    from antinoise.torch.relied import base_of, global_hooks, hooks, is_view, own_parameters, version_of

    layer, optimizer = torch.nn.Conv1d(2, 2, 1), torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])
    handle = optimizer.register_step_pre_hook(lambda *_: None)
    cases = [
        (f"_{when}_hooks", layer, lambda m, when=when: hooks(m, when))
        for when in ("forward_pre", "forward", "backward_pre", "backward")
    ]
    cases += [("_parameters", layer, own_parameters), ("_version", layer.weight, version_of)]
    cases += [("_is_view", layer.weight, is_view), ("_base", layer.weight, base_of)]
    cases += [("_optimizer_step_pre_hooks", optimizer, lambda o: has_hook(o, handle))]
    for name, of, use in cases:
        use(of)
        with pytest.raises(RuntimeError, match=message("torch", "Without", name)):
            use(Without(of, name))
    assert len(cases) == 9
    for when in ("forward_pre", "forward", "backward_pre", "backward"):
        name = f"_global_{when}_hooks"
        assert global_hooks(when) == {}
        with monkeypatch.context() as without:
            without.delattr(torch.nn.modules.module, name)
            with pytest.raises(RuntimeError, match=message("torch", "torch.nn.modules.module", name)):
                global_hooks(when)


def test_padding_of_convolutions_is_asserted():
    torch = pytest.importorskip("torch")
    from antinoise.torch import clipped_sum_

    model = torch.nn.Sequential(torch.nn.Conv1d(2, 2, 1), torch.nn.Flatten())
    del model[0]._reversed_padding_repeated_twice
    with pytest.raises(RuntimeError, match=message("torch", "Conv1d", "_reversed_padding_repeated_twice")):
        clipped_sum_(
            model,
            torch.nn.functional.cross_entropy,
            torch.zeros(4, 2, 3),
            torch.zeros(4, dtype=torch.long),
            1.0,
            norms="ghost",
        )


def test_the_implementation_of_attention_is_never_guessed():
    """If a release renames it, whether masks of padding can be kept is unknown."""
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    from antinoise._hf_losses import follow_masks

    class Config(transformers.PretrainedConfig):
        __qualname__ = "Config"
        _attn_implementation = property(
            lambda self: _nothing("_attn_implementation"), lambda self, value: None
        )

    model = torch.nn.Module()
    model.config = Config()
    with pytest.raises(RuntimeError, match=message("transformers", "Config", "_attn_implementation")):
        follow_masks(model)


STATE = [
    "_get_fsdp_state",
    "_mp_policy",
    "param_dtype",
    "reduce_dtype",
    "gradient_divide_factor",
    "_all_reduce_hook",
    "_reduce_scatter_comm",
]


@pytest.mark.parametrize("name", STATE)
def test_what_fsdp_reduces_with_is_never_guessed(name):
    """If a release renames a field, its value is unknown, which is refused."""
    pytest.importorskip("opacus")
    from types import SimpleNamespace as Fields

    import torch

    from antinoise._opacus_sharded import _check_reduction

    comm = type("Comm", (), {"__module__": "torch.distributed.fsdp"})()
    policy = Fields(param_dtype=None, reduce_dtype=torch.float32)
    group = Fields(gradient_divide_factor=None, _all_reduce_hook=None, _reduce_scatter_comm=comm)
    state = Fields(_mp_policy=policy, _fsdp_param_groups=[group])
    part = Fields(_get_fsdp_state=lambda: state)
    _check_reduction("module", part)
    owner = next(of for of in (policy, group, state, part) if hasattr(of, name))
    delattr(owner, name)
    with pytest.raises(RuntimeError, match=message("torch", "SimpleNamespace", name)):
        _check_reduction("module", part)
    # Earlier versions have one group instead of several.
    part = Fields(_get_fsdp_state=lambda: Fields(_mp_policy=Fields(param_dtype=None, reduce_dtype=None)))
    with pytest.raises(RuntimeError, match=message("torch", "SimpleNamespace", "_fsdp_param_group")):
        _check_reduction("module", part)


OF_OPTIMIZER = [
    "_step_skip_queue",
    "_is_last_step_skipped",
    "clip_and_accumulate",
    "add_noise",
    "scale_grad",
    "grad_samples",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OF_OPTIMIZER)
def test_names_of_opacus_are_asserted_when_a_model_is_made_private(name, monkeypatch):
    pytest.importorskip("opacus")
    from conftest import small_plan
    from opacus.optimizers import DPOptimizer
    from opacus_run import Run

    if name == "grad_samples":
        monkeypatch.delattr(DPOptimizer, name)
    else:
        # The attribute can be set, but reading it always fails.
        monkeypatch.setattr(
            DPOptimizer, name, property(lambda self: _nothing(name), lambda self, value: None), raising=False
        )
    with pytest.raises(
        RuntimeError, match=rf"opacus {metadata.version('opacus')} has no .*{name}, which antinoise relies on"
    ):
        Run(small_plan(dim=93, clip_norm=0.7))


@pytest.mark.filterwarnings("ignore")
def test_the_model_within_opacus_is_asserted(monkeypatch):
    opacus = pytest.importorskip("opacus")
    from types import SimpleNamespace as Fields

    from conftest import small_plan
    from opacus_run import Run

    cleaned = []
    wrapped = Fields(cleanup=lambda: cleaned.append(True))
    monkeypatch.setattr(opacus.PrivacyEngine, "make_private", lambda self, **how: (wrapped, None, None))
    with pytest.raises(RuntimeError, match=message("opacus", "SimpleNamespace", "_module")):
        Run(small_plan(dim=93, clip_norm=0.7))
    assert cleaned


OF_TRAINER = [
    "get_train_dataloader",
    "create_optimizer",
    "create_scheduler",
    "training_step",
    "compute_loss",
    "compute_loss_context_manager",
]
OF_TRAINER += ["log", "_prepare_inputs", "_save_optimizer_and_scheduler", "_load_optimizer_and_scheduler"]


@pytest.mark.parametrize("name", OF_TRAINER)
def test_names_of_transformers_are_asserted_when_a_trainer_is_made(name, monkeypatch):
    transformers = pytest.importorskip("transformers")
    from antinoise.hf import PrivateTrainer

    monkeypatch.delattr(transformers.Trainer, name)
    with pytest.raises(RuntimeError, match=message("transformers", "Trainer", name)):
        PrivateTrainer(plan=None)


@pytest.mark.parametrize("name", ["_accelerator_connector", "use_distributed_sampler"])
def test_names_of_lightning_are_asserted_when_a_fit_begins(name):
    lightning = pytest.importorskip("lightning")
    from types import SimpleNamespace as Fields

    from conftest import small_plan

    from antinoise.lightning import PrivateTraining

    trainer = Fields(world_size=2, _accelerator_connector=Fields(use_distributed_sampler=True))
    with pytest.raises(ValueError, match="use_distributed_sampler of the trainer is True"):
        PrivateTraining(small_plan()).setup(trainer, lightning.LightningModule(), "fit")
    delattr(trainer if hasattr(trainer, name) else trainer._accelerator_connector, name)
    with pytest.raises(RuntimeError, match=message("lightning", "SimpleNamespace", name)):
        PrivateTraining(small_plan()).setup(trainer, lightning.LightningModule(), "fit")


def test_the_extras_promise_what_is_tested():
    """The lower bound and the first excluded version of each library."""
    page = Path(__file__).parents[1] / "pyproject.toml"
    if not page.exists():
        pytest.skip("not in a checkout")
    found = dict(
        re.findall(
            r'"(torch|opacus|lightning|transformers|trl|jax|flwr)>=([\d.]+,<[\d.]+)"', page.read_text()
        )
    )
    for library, tested in TESTED.items():
        first, last = (tested.split(" to ") * 2)[:2]
        major, minor = map(int, last.split("."))
        assert found[library].split(",<") == [first, f"{major}.{minor + 1}"], library
    assert len(found) == len(TESTED) == 7 and _relied.TESTED is TESTED
