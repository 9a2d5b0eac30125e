//! The parts of a card on a model of characters.

use antinoise_federated::lstm::SavedLstm;
use antinoise_federated::plays::CHARACTERS;

use super::words::{one_line, without_folders};

/// The model and its predictions, in words.
pub(super) fn what(saved: &SavedLstm) -> String {
    let model = saved.model();
    format!(
        "An LSTM, a model of {} parameters that predicts the next of {} characters from at most {} before it",
        model.parameters(),
        model.symbols(),
        saved.length(),
    )
}

/// How the model is used: on the command line, from Rust and from PyTorch.
pub(super) fn usage(saved: &SavedLstm, data: &str) -> String {
    let (model, (text, user)) = (saved.model(), saved.columns());
    let (symbols, embedding, hidden) = (model.symbols(), model.embedding(), model.hidden());
    format!(
        "\n## How to use it\n\nTables with the columns {} (texts) and {} (whose they are), such as the data it was \
         trained on ({}):\n\n```sh\nantinoise evaluate . --data KIND:PATH\n```\n\nFrom Rust, \
         `antinoise_federated::lstm::SavedLstm::load`. In PyTorch (`pip install torch safetensors`), with x of rows x {} \
         characters by number, each predicting the one after it: 1 more than the place of a character in \
         `characters`, 0 for all others. A person's text, with a newline in front, is cut into such rows.\n\n```python\n\
         import torch\nfrom safetensors.torch import load_file\nfrom torch import nn\n\n\
         characters = {CHARACTERS:?}\nweights = load_file(\"model.safetensors\")\n\
         weights[\"lstm.bias_hh_l0\"] = torch.zeros_like(weights[\"lstm.bias_ih_l0\"])\n\
         model = nn.ModuleDict({{\n    \"embedding\": nn.Embedding({symbols}, {embedding}),\n    \
         \"lstm\": nn.LSTM({embedding}, {hidden}, batch_first=True),\n    \
         \"linear\": nn.Linear({hidden}, {symbols}),\n}})\nmodel.load_state_dict(weights)\n\
         outputs, _ = model[\"lstm\"](model[\"embedding\"](x))\n\
         probabilities = model[\"linear\"](outputs).softmax(-1)\n```\n",
        one_line(text),
        one_line(user),
        one_line(&without_folders(data)),
        saved.length(),
    )
}
