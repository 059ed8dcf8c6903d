"""Trains the small decoder that the chat example talks with, and writes every file that the demo reads.

    python train.py            # about a quarter of an hour on one core

The net continues a text, one token at a time: a decoder of the Llama family (H. Touvron et al., 2023) with four layers
of four heads, two of keys and values (J. Ainslie et al., "GQA", 2023), rotary positions, a gated dense part, and one
table for the tokens that come in and those that go out. It learns from dialogues that dialogues.py makes up; the last
third of the training sees the weights as they are stored, rounded to four bits in blocks of 32 (the table to eight).

Tokens come from a byte-pair encoding (P. Gage, 1994; R. Sennrich et al., 2016): at first each character is a token;
then, again and again, the neighbours that the vocabulary has joined earliest are joined.

The model is written node by node, as onnxruntime-genai's builder writes decoders: GroupQueryAttention with a cache,
MatMulNBits, GatherBlockQuantized.

Invariants that main.cpp relies on:
  * inputs "input_ids" int64 [1,S] and "attention_mask" int64 [1,T] of ones, T the tokens so far with these; the caches
    "past_key_values.L.key" and ".value"; outputs "logits" float32 [1,1,V] behind the last token, and the caches
    "present.L.key" and ".value"; no more than 128 tokens in all,
    of which an answer gets 32: a dialogue in which they have no room begins anew;
  * a line of vocabulary.txt is a token, its number counted from 0: <end>, <user>, <robot>, then the characters, then what
    was joined, in that order. What the vocabulary lacks is left out of a text;
  * a word is letters with the blank before them; any other character is a word, with the blank before it as well. Tokens
    are joined within words;
  * a dialogue is "<user>" question "<robot>" answer "<end>", and so on; both texts begin with a blank;
  * questions.txt has lines of "question<TAB>right answer", with an empty line between dialogues, onnxruntime.txt the
    greedy answers of ONNX Runtime, line by line.
"""

import re
import time
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from torch.nn import functional as F

import dialogues

HERE = Path(__file__).resolve().parent
SEED = 1
WIDTH, HEADS, SHARED, SIZE, INNER, LAYERS = 128, 4, 2, 32, 352, 4  # SHARED: heads of keys and values
LONGEST, LONGEST_ANSWER = 128, 32
BLOCK, EPSILON, BASE = 32, 1e-5, 10000.0
VOCABULARY = 448
SURE = 1.0  # so much before the second likeliest is each token of an answer that is stored
END, USER, ROBOT = 0, 1, 2
STEPS, BATCH, ROUNDED_FROM, LEARNING_RATE = 3600, 24, 0.7, 3e-3
DIALOGUES = 80000  # to train on


def words_of(text):
    return re.findall(" ?[A-Za-z]+| ?[^A-Za-z ]| ", text)


def make_vocabulary(texts):
    """The list of tokens: END, USER, ROBOT, characters, and what joins them, the most frequent neighbours first."""
    counts = Counter(word for text in texts for word in words_of(text))
    tokens = ["<end>", "<user>", "<robot>"] + sorted({character for word in counts for character in word})
    split = {word: list(word) for word in counts}
    while len(tokens) < VOCABULARY:
        pairs = Counter()
        for word, parts in split.items():
            for pair in zip(parts, parts[1:]):
                pairs[pair] += counts[word]
        (left, right), _ = min(pairs.items(), key=lambda item: (-item[1], item[0]))
        tokens.append(left + right)
        for parts in split.values():
            at = 0
            while at + 1 < len(parts):
                if parts[at] == left and parts[at + 1] == right:
                    parts[at : at + 2] = [left + right]
                at += 1
    return tokens


class Tokeniser:
    def __init__(self, tokens):
        self.tokens, self.numbers, self.known = tokens, {token: k for k, token in enumerate(tokens)}, {}

    def encode(self, text):
        """As main.cpp does it."""
        return [number for word in words_of(text) for number in self.of_word(word)]

    def of_word(self, word):
        if word not in self.known:
            parts = [character for character in word if character in self.numbers]
            while True:
                joined = [(self.numbers.get(a + b, VOCABULARY), at) for at, (a, b) in enumerate(zip(parts, parts[1:]))]
                if not joined or min(joined)[0] == VOCABULARY:
                    break
                at = min(joined)[1]
                parts[at : at + 2] = [parts[at] + parts[at + 1]]
            self.known[word] = [self.numbers[part] for part in parts]
        return self.known[word]

    def decode(self, numbers):
        return "".join(self.tokens[number] for number in numbers)

    def question(self, text):
        return [USER, *self.encode(" " + text), ROBOT]


def rounded(weight, bits):
    """Whole numbers [N,K/32,32] and scales [N,K/32,1]: symmetric, in blocks along the last axis."""
    blocks = weight.reshape(len(weight), -1, BLOCK)
    half = 2 ** (bits - 1)
    scales = (blocks.abs().amax(-1, keepdim=True) / (half - 1)).clamp(min=1e-8)
    return torch.clamp(torch.round(blocks / scales), -half, half - 1), scales


def as_stored(weight, bits, on):
    """What the model file will hold; gradients go to what it is rounded from."""
    if not on:
        return weight
    numbers, scales = rounded(weight.detach(), bits)
    return weight + ((numbers * scales).reshape(weight.shape) - weight.detach())


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.ones(WIDTH))
        matrices = {"q": (HEADS * SIZE, WIDTH), "k": (SHARED * SIZE, WIDTH), "v": (SHARED * SIZE, WIDTH),
                    "o": (WIDTH, HEADS * SIZE), "gate": (INNER, WIDTH), "up": (INNER, WIDTH), "down": (WIDTH, INNER)}
        self.matrices = nn.ParameterDict({
            name: nn.Parameter(torch.randn(shape) * (shape[1] * (2 * LAYERS if name in ("o", "down") else 1)) ** -0.5)
            for name, shape in matrices.items()})

    def forward(self, x, cos, sin, four_bits):
        def times(name, y):
            return F.linear(y, as_stored(self.matrices[name], 4, four_bits))

        def turned(y):  # the halves of a head are the parts of complex numbers
            a, b = y.chunk(2, -1)
            return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

        batch, length, _ = x.shape
        y = F.rms_norm(x, (WIDTH,), self.before, EPSILON)
        q, k, v = (times(name, y).reshape(batch, length, -1, SIZE).transpose(1, 2) for name in "qkv")
        y = F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True, enable_gqa=True)
        x = x + times("o", y.transpose(1, 2).reshape(batch, length, -1))
        y = F.rms_norm(x, (WIDTH,), self.between, EPSILON)
        return x + times("down", F.silu(times("gate", y)) * times("up", y))


def rotations():
    angles = np.outer(np.arange(LONGEST), BASE ** (-np.arange(0, SIZE, 2) / SIZE))
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(VOCABULARY, WIDTH) * WIDTH**-0.5)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.last = nn.Parameter(torch.ones(WIDTH))
        self.cos, self.sin = (torch.from_numpy(part) for part in rotations())

    def forward(self, tokens, is_answer, four_bits):
        """int64 [N,L] -> logits of what follows the tokens that `is_answer` [N,L] names."""
        table = as_stored(self.table, 8, four_bits)
        x = F.embedding(tokens, table)
        for layer in self.layers:
            x = layer(x, self.cos[: tokens.shape[1]], self.sin[: tokens.shape[1]], four_bits)
        return F.linear(F.rms_norm(x[is_answer], (WIDTH,), self.last, EPSILON), table)


def as_tokens(turns, tokeniser):
    """A dialogue -> its tokens, and which of them the net is to learn: the answers and their ends."""
    numbers, learn = [], []
    for question, answer in turns:
        asked, said = tokeniser.question(question), [*tokeniser.encode(" " + answer), END]
        numbers += asked + said
        learn += [False] * len(asked) + [True] * len(said)
    return numbers[:LONGEST], learn[:LONGEST]


def batches(tokeniser, random):
    """Endlessly: tokens int64 [N,L] and which are learnt, bool [N,L]; dialogues of like length together."""
    samples = sorted((as_tokens(dialogues.dialogue(random), tokeniser) for _ in range(DIALOGUES)), key=lambda s: len(s[0]))
    groups = [samples[at : at + BATCH] for at in range(0, DIALOGUES - BATCH + 1, BATCH)]
    while True:
        for group in random.sample(range(len(groups)), len(groups)):
            length = max(len(numbers) for numbers, _ in groups[group])
            tokens, learn = np.zeros((BATCH, length), np.int64), np.zeros((BATCH, length), bool)
            for row, (numbers, learnt) in enumerate(groups[group]):
                tokens[row, : len(numbers)], learn[row, : len(numbers)] = numbers, learnt
            yield torch.from_numpy(tokens), torch.from_numpy(learn)


def train(tokeniser, random):
    net = Decoder()
    matrices = [p for p in net.parameters() if p.dim() == 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.05},
                                   {"params": [p for p in net.parameters() if p.dim() == 1], "weight_decay": 0.0}],
                                  betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=LEARNING_RATE, total_steps=STEPS, pct_start=0.05)
    sums, start = [], time.time()
    for step, (tokens, learn) in zip(range(STEPS), batches(tokeniser, random)):
        logits = net(tokens[:, :-1], learn[:, 1:], step >= ROUNDED_FROM * STEPS)
        loss = F.cross_entropy(logits, tokens[:, 1:][learn[:, 1:]])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        sums.append(loss.item())
        if step % 100 == 99:
            print(f"step {step + 1:4d}  loss {np.mean(sums[-100:]):.4f}  {time.time() - start:4.0f} s", flush=True)
    return net.eval()


class Graph:
    """An ONNX model, node by node."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, name, values):
        self.constants.append(numpy_helper.from_array(values, name))
        return name

    def node(self, op, inputs, outputs, domain="", **attributes):
        outputs = [outputs] if isinstance(outputs, str) else outputs
        self.nodes.append(helper.make_node(op, inputs, outputs, name=outputs[0], domain=domain, **attributes))
        return outputs[0]

    def stored(self, name, weight, bits):
        """The names of the numbers uint8 [N,K/32,bytes] and of the scales float32 [N,K/32]."""
        numbers, scales = rounded(weight.detach(), bits)
        numbers = (numbers.numpy() + 2 ** (bits - 1)).astype(np.uint8)
        if bits == 4:
            numbers = numbers[..., 0::2] | numbers[..., 1::2] << 4
        return self.constant(name + ".weight", numbers), self.constant(name + ".scales", scales.squeeze(-1).numpy())

    def product(self, x, name, weight, bits, stored=None, output=None):
        return self.node("MatMulNBits", [x, *(stored or self.stored(name, weight, bits))], output or name, "com.microsoft",
                         K=weight.shape[1], N=weight.shape[0], bits=bits, block_size=BLOCK, accuracy_level=4)


def export(net, path):
    graph, microsoft = Graph(), "com.microsoft"
    node, constant = graph.node, graph.constant

    def normed(name, x, weight, added=None):  # the second result is what was normed: x with what is added
        weight = constant(name + ".weight", weight.detach().numpy())
        if added is None:
            return node("SimplifiedLayerNormalization", [x, weight], name, axis=-1, epsilon=EPSILON), x
        node("SkipSimplifiedLayerNormalization", [x, added, weight], [name, "", "", name + ".sum"], microsoft,
             epsilon=EPSILON)
        return name, name + ".sum"

    ones = node("ReduceSum", ["attention_mask", constant("axis", np.array([1]))], "length", keepdims=0)
    past = node("Cast", [node("Sub", [ones, constant("one", np.array(1))], "before")], "seqlens_k", to=TensorProto.INT32)
    shape = node("Shape", ["attention_mask"], "mask_shape")
    total = node("Cast", [node("Gather", [shape, "one"], "total_length")], "total_sequence_length", to=TensorProto.INT32)
    cos, sin = (constant(name, part) for name, part in zip(("cos_cache", "sin_cache"), rotations()))

    table = graph.stored("embed_tokens", net.table, 8)
    rows = node("Reshape", [table[0], constant("rows", np.array([VOCABULARY, WIDTH]))], "embed_tokens.rows")
    x = node("GatherBlockQuantized", [rows, "input_ids", table[1]], "embed", microsoft, bits=8, block_size=BLOCK,
             gather_axis=0, quantize_axis=1)
    inputs, outputs, added = [], [], None
    for k, layer in enumerate(net.layers):
        def times(name, y):
            return graph.product(y, f"layers.{k}.{name}", layer.matrices[name], 4)

        y, x = normed(f"layers.{k}.before", x, layer.before, added)
        caches = [f"{k}.key", f"{k}.value"]
        node("GroupQueryAttention",
             [*(times(name, y) for name in "qkv"), *("past_key_values." + c for c in caches), past, total, cos, sin],
             [f"layers.{k}.attention", *("present." + c for c in caches)], microsoft, num_heads=HEADS,
             kv_num_heads=SHARED, scale=SIZE**-0.5, do_rotary=1, rotary_interleaved=0)
        y, x = normed(f"layers.{k}.between", x, layer.between, times("o", f"layers.{k}.attention"))
        gate = times("gate", y)
        silu = node("Mul", [gate, node("Sigmoid", [gate], f"layers.{k}.sigmoid")], f"layers.{k}.silu")
        added = times("down", node("Mul", [silu, times("up", y)], f"layers.{k}.gated"))
        for names, word, length in ((inputs, "past_key_values.", "past_sequence_length"),
                                    (outputs, "present.", "total_sequence_length")):
            names += [helper.make_tensor_value_info(word + c, TensorProto.FLOAT, ["batch_size", SHARED, length, SIZE])
                      for c in caches]
    y, _ = normed("norm", x, net.last, added)
    y = node("Gather", [y, constant("last", np.array([-1]))], "last_token", axis=1)
    graph.product(y, "lm_head", net.table, 8, table, "logits")
    value = helper.make_tensor_value_info
    inputs = [value("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"]),
              value("attention_mask", TensorProto.INT64, ["batch_size", "total_sequence_length"]), *inputs]
    outputs = [value("logits", TensorProto.FLOAT, ["batch_size", 1, VOCABULARY]), *outputs]
    model = helper.make_model(helper.make_graph(graph.nodes, "chat", inputs, outputs, graph.constants), ir_version=10,
                              opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(microsoft, 1)])
    onnx.save(model, path)


class Talk:
    """A dialogue by ONNX Runtime: greedy, a token a run, the caches handed on."""

    def __init__(self, session, tokeniser):
        self.session, self.tokeniser = session, tokeniser
        self.names = [i.name for i in session.get_inputs()][2:]
        self.begin()

    def begin(self):
        self.forget()
        self.margin = np.inf  # what the likeliest token had before the second, the least of all

    def forget(self):
        self.caches = {name: np.zeros((1, SHARED, 0, SIZE), np.float32) for name in self.names}
        self.length, self.unread = 0, []

    def step(self, tokens):
        self.length += len(tokens)
        logits, *caches = self.session.run(None, {"input_ids": np.array([tokens]),
                                                  "attention_mask": np.ones((1, self.length), np.int64), **self.caches})
        self.caches = dict(zip(self.names, caches))
        second, first = np.sort(logits[0, 0])[-2:]
        self.margin = min(self.margin, first - second)
        return int(logits[0, 0].argmax())

    def ask(self, question):
        """As main.cpp does it."""
        asked, said = self.tokeniser.question(question), []
        if self.length + len(self.unread) + len(asked) + LONGEST_ANSWER > LONGEST:
            self.forget()
        unread = self.unread + asked
        while len(said) < LONGEST_ANSWER:
            token = self.step(unread)
            unread = []
            if token == END:
                break
            said.append(token)
            unread = [token]
        self.unread = unread + [END]
        return self.tokeniser.decode(said).removeprefix(" ")


def ask_all(talk, turns):
    """What the net says to the questions of a dialogue."""
    talk.begin()
    return [talk.ask(question) for question, _ in turns]


def count_right(talk, name, made):
    pairs = [(said, turn) for turns in made for said, turn in zip(ask_all(talk, turns), turns)]
    wrong = [f"    {question} -> {said}" for said, (question, answer) in pairs if said != answer]
    print(f"{name}: {len(pairs) - len(wrong)} of {len(pairs)} right", *wrong[:8], sep="\n")


def store(talk, random):
    """questions.txt and onnxruntime.txt: of dialogues and of questions held out the first twelve each of which the net is
    sure. Rows are rounded to eight bits before each product, by each program in its own way, so that others differ."""
    questions, answers = [], []
    for make in (dialogues.dialogue, dialogues.held_out):
        kept = 0
        while kept < 12:
            turns = make(random)
            said = ask_all(talk, turns)
            if talk.margin < SURE or (make is dialogues.dialogue and len(turns) < 3):
                continue
            kept += 1
            questions += [*(f"{question}\t{answer}" for question, answer in turns), ""]
            answers += [*said, ""]
    (HERE / "questions.txt").write_text("\n".join(questions))
    (HERE / "onnxruntime.txt").write_text("\n".join(answers))


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # more threads would sum in another order
    torch.use_deterministic_algorithms(True)
    random = Random(SEED)

    texts = [f" {text}" for _ in range(4000) for turn in dialogues.dialogue(random) for text in turn]
    tokeniser = Tokeniser(make_vocabulary(texts))
    (HERE / "vocabulary.txt").write_text("\n".join(tokeniser.tokens) + "\n")
    net = train(tokeniser, random)
    export(net, HERE / "chat.onnx")
    print(f"{sum(p.numel() for p in net.parameters())} weights, {(HERE / 'chat.onnx').stat().st_size} bytes")

    session = onnxruntime.InferenceSession(HERE / "chat.onnx", providers=["CPUExecutionProvider"])
    talk, random = Talk(session, tokeniser), Random(SEED + 1)
    count_right(talk, "as trained", [dialogues.dialogue(random) for _ in range(200)])
    for make in dialogues.HELD_OUT:
        count_right(talk, f"{make.__name__}, held out", [[make(random, held=True)] for _ in range(200)])
    store(talk, Random(SEED + 2))


if __name__ == "__main__":
    main()
