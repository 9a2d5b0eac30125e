"""Ghost norms on twelve architectures of transformers: sums are those of one example at a time, with padding
and without, whole and with LoRA; which parameters have per-example gradients.
"""

import os
import warnings

import pytest

torch = pytest.importorskip("torch")
os.environ["HF_HUB_OFFLINE"] = "1"
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")
from ghost_models import clipped, looped, median, taken
from torch import nn
from torch.nn import functional

from antinoise.torch import clipped_sum_, clipping
from antinoise.torch.ghost import alone

WIDTH, PLACES, VOCABULARY, EXAMPLES = 16, 8, 40, 9
COMMON = dict(hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2, vocab_size=VOCABULARY)
COMMON |= dict(
    max_position_embeddings=24, intermediate_size=24, pad_token_id=0, bos_token_id=1, eos_token_id=2
)
GATED = COMMON | dict(num_key_value_heads=1)
BERT = COMMON | dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=3)
GPT2 = dict(n_embd=WIDTH, n_layer=2, n_head=2, n_positions=24, vocab_size=VOCABULARY, bos_token_id=1)
T5 = dict(d_model=WIDTH, d_kv=8, d_ff=24, num_layers=2, num_heads=2, vocab_size=VOCABULARY, dropout_rate=0.0)
KINDS = {
    "Llama": ("ForCausalLM", GATED),
    "Mistral": ("ForCausalLM", GATED),
    "Qwen2": ("ForCausalLM", GATED),
    "Gemma": ("ForCausalLM", GATED | dict(head_dim=8)),
    "Phi": ("ForCausalLM", COMMON),
    "GPT2": ("LMHeadModel", GPT2 | dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, eos_token_id=2)),
    "OPT": ("ForCausalLM", COMMON | dict(ffn_dim=24, word_embed_proj_dim=WIDTH, dropout=0.0)),
    "Bert": ("ForSequenceClassification", BERT),
    "Roberta": ("ForSequenceClassification", BERT),
    "T5": ("ForConditionalGeneration", T5 | dict(decoder_start_token_id=0, pad_token_id=0)),
    "ViT": ("ForImageClassification", BERT | dict(image_size=8, patch_size=4)),
    "Mixtral": ("ForCausalLM", GATED | dict(num_local_experts=4, num_experts_per_tok=2)),
}
# Parameters that have per-example gradients.
ALONE = {"ViT": ("cls_token", "position_embeddings")}


class Model(nn.Module):
    """The mean of the outputs at what is no padding."""

    def __init__(self, kind, masked):
        super().__init__()
        torch.manual_seed(3)
        task, how = KINDS[kind]
        self.inner = getattr(transformers, f"{kind}{task}")(getattr(transformers, f"{kind}Config")(**how))
        if kind == "Mixtral":
            # The default does not take double precision.
            self.inner.set_experts_implementation("eager")
        self.kind, self.masked = kind, masked
        # Positions and biases of new models are alike.
        for p in self.inner.parameters():
            nn.init.normal_(p, std=0.2)

    def forward(self, x):
        if self.kind == "ViT":
            return self.inner(pixel_values=x).logits
        mask = (x != 0).long() if self.masked else torch.ones_like(x)
        how = dict(attention_mask=mask) if self.masked else {}
        if self.kind == "T5":
            how |= dict(decoder_input_ids=x.flip(1))
        out = self.inner(input_ids=x, **how).logits
        return out if out.dim() == 2 else (out * mask[..., None]).sum(1) / mask.sum(1)[:, None]


def loss(logits, y):
    return functional.cross_entropy(logits, y)


def examples(kind, masked):
    torch.manual_seed(4)
    if kind == "ViT":
        return torch.randn(EXAMPLES, 3, 8, 8, dtype=torch.float64), torch.randint(0, 3, (EXAMPLES,))
    x, y = torch.randint(1, VOCABULARY, (EXAMPLES, PLACES)), torch.randint(0, 3, (EXAMPLES,))
    if masked:
        lengths = torch.randint(2, PLACES, (EXAMPLES, 1))
        x = torch.where(torch.arange(PLACES) < lengths, x, 0)
    return x, y


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("masked", [False, True], ids=["whole rows", "padded"])
@pytest.mark.parametrize("trained", ["all", "LoRA"])
def test_sums_of_a_transformer_are_those_of_one_example_at_a_time(kind, masked, trained, monkeypatch):
    model, (x, y) = Model(kind, masked).double(), examples(kind, masked)
    if trained == "LoRA":
        # Adapters of experts are parametrizations, which fall back.
        targets = ["q_proj", "v_proj", "o_proj"] if kind == "Mixtral" else "all-linear"
        lora = peft.LoraConfig(r=2, target_modules=targets, init_lora_weights=False)
        model.inner = peft.get_peft_model(model.inner, lora).double()
    model.train()
    gradients = looped(model, loss, x, y)
    clip = median(gradients)
    assert clip > 0.01
    # No gradients of the whole model.
    monkeypatch.setattr(clipping, "_of_each", lambda *_: pytest.fail("not by ghost norms"))
    for microbatch_size in (4, EXAMPLES):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            clipped_sum_(model, loss, x, y, clip, microbatch_size=microbatch_size)
        said = [str(w.message) for w in caught if "norms=" in str(w.message)]
        expected = ALONE.get(kind) if trained == "all" and microbatch_size == 4 else None
        assert bool(said) == bool(expected), said
        for name in expected or ():
            assert name in said[0].split(" one by one")[0]
        found, wanted = taken(model), clipped(gradients, clip)
        # Some normalise in single precision.
        assert (found - wanted).norm() <= 1e-7 * wanted.norm()


def plain_and_bare(use):
    class Bare(nn.Module):
        """A parameter of the module itself, and a layer within it."""

        def __init__(self):
            super().__init__()
            self.inner, self.scale = nn.Linear(6, 6), nn.Parameter(torch.linspace(-1, 2, 6))

        def forward(self, x):
            return use(self, x)

    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 6), Bare(), nn.Linear(6, 3)).double()
    return model, torch.randn(13, 6).double(), torch.randint(0, 3, (13,))


USES = {
    "scaled": lambda of, x: of.inner(x) * of.scale,
    "twice": lambda of, x: torch.tanh(of.inner(x) * of.scale) + of.scale.square(),
    "inside": lambda of, x: of.inner(x * of.scale.exp()),
}


@pytest.mark.parametrize("use", USES)
def test_gradients_are_made_of_a_bare_parameter_alone(use):
    model, x, y = plain_and_bare(USES[use])
    gradients = looped(model, loss, x, y)
    for microbatch_size in (1, 5, 13):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            clipped_sum_(model, loss, x, y, 0.3, microbatch_size=microbatch_size)
        said = [str(w.message) for w in caught]
        assert all("makes the gradients of 1.scale one by one" in text for text in said)
        assert len(said) == (microbatch_size == 1)
        assert torch.allclose(taken(model), clipped(gradients, 0.3), rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="1 is a Bare but must be one of Linear"):
        clipped_sum_(model, loss, x, y, 0.3, norms="ghost")


class Beside(nn.Module):
    """A module whose parameter reaches the loss otherwise than by its output."""

    def __init__(self):
        super().__init__()
        self.inner, self.scale, self.beside = nn.Linear(6, 6), nn.Parameter(torch.ones(6)), None

    def forward(self, x):
        self.beside = (x * self.scale).square().sum(1, keepdim=True)
        return self.inner(x) * self.scale


class WithBeside(nn.Module):
    def __init__(self):
        super().__init__()
        self.part, self.out = Beside(), nn.Linear(6, 3)

    def forward(self, x):
        out = self.out(self.part(x))
        return out + self.part.beside


class Drops(nn.Module):
    """Its outputs for each example are others in a second pass."""

    def __init__(self):
        super().__init__()
        self.inner, self.scale = nn.Linear(6, 6), nn.Parameter(torch.ones(6))

    def forward(self, x):
        return functional.dropout(self.inner(x) * self.scale, 0.5, self.training)


class LeafDrops(nn.Module):
    """Its outputs for each example are others in a second pass, and nothing within it is followed."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(6))

    def forward(self, x):
        return functional.dropout(x * self.scale, 0.5, self.training)


@pytest.mark.parametrize(
    "made",
    [
        WithBeside,
        lambda: nn.Sequential(Drops(), nn.Linear(6, 3)),
        lambda: nn.Sequential(LeafDrops(), nn.Linear(6, 3)),
    ],
    ids=["beside", "dropout", "dropout alone"],
)
def test_a_module_that_cannot_be_run_for_each_example_falls_back_as_a_whole(made):
    torch.manual_seed(1)
    model, x, y = made().double(), torch.randn(13, 6).double(), torch.randint(0, 3, (13,))
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            clipped_sum_(model, loss, x, y, 0.3, microbatch_size=4)
        found = taken(model)
    assert all('norms="auto" makes the gradients one by one' in str(w.message) for w in caught)
    assert all(p.requires_grad and "forward" not in vars(m) for m in model.modules() for p in m.parameters())
    if made is WithBeside:
        assert torch.allclose(found, clipped(looped(model, loss, x, y), 0.3), rtol=1e-9, atol=1e-12)


def test_gradients_for_each_example_fit_a_bound_on_memory(monkeypatch):
    model, x, y = plain_and_bare(USES["scaled"])
    sizes, plain = [], alone.Call.__init__

    def counted(self, layer, args, kwargs, output, examples):
        sizes.append(examples)
        plain(self, layer, args, kwargs, output, examples)

    monkeypatch.setattr(alone.Call, "__init__", counted)
    monkeypatch.setattr(clipping, "GRADIENT_VALUES", 4 * 6)
    with pytest.warns(UserWarning, match="1.scale one by one"):
        clipped_sum_(model, loss, x, y, 0.3)
    # The test of two examples first, on both; four portions of at most four.
    assert sizes == [2, 2, 4, 4, 4, 4]
    assert torch.allclose(taken(model), clipped(looped(model, loss, x, y), 0.3), rtol=1e-9, atol=1e-12)


def test_autocast_is_that_of_the_pass():
    """In half precision sums are near the sums of single precision."""
    model, x, y = plain_and_bare(USES["scaled"])
    model, x = model.float(), x.float()
    gradients = looped(model, loss, x, y)
    with torch.autocast("cpu", torch.bfloat16), pytest.warns(UserWarning, match="1.scale one by one"):
        clipped_sum_(model, loss, x, y, 0.3)
    assert (taken(model) - clipped(gradients, 0.3)).norm() < 0.05 * 0.3 * len(x)
