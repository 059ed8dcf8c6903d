"""Trains the text embedding and writes every file that the demo reads.

    python train.py            # about a minute on one core

The net turns a sentence into 64 numbers, so that sentences that mean the same point in the same direction: a small
transformer encoder (A. Vaswani et al., 2017; two layers of four heads), whose tokens' mean is scaled to length 1. It
learns what means the same from phrases.txt, by telling two phrasings of a meaning from those of all other meanings
(A. van den Oord et al., "Representation learning with contrastive predictive coding", 2018). Typing errors, missing
words and politeness are thrown in.

Tokens are pieces of words, taken greedily from the left, the longest first (M. Schuster and K. Nakajima, "Japanese and
Korean voice search", 2012): whole words of the training phrases, and shorter pieces down to single letters, so that
every word can be written. "##" marks a piece that continues a word.

The last three phrasings of each meaning are held out: nothing is tuned on them.

Invariants that main.cpp relies on:
  * inputs "tokens" int64 [N,L] (line of vocabulary.txt, 0 after the end) and "mask" float32 [N,L] (1 for tokens, 0
    after the end), N and L free, L at most 32; output "embedding" float32 [N,64], each row of length 1;
  * words are runs of ASCII letters and digits, in lower case, apostrophes left out; at most 32 tokens count;
  * sentences.txt has one sentence a line; queries.txt lines of "number<TAB>query": the line, from 0, that is right;
  * onnxruntime.npy holds ONNX Runtime's embeddings of the sentences and then of the queries.
"""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from torch import nn

HERE = Path(__file__).resolve().parent
SEED = 1
WIDTH, HEADS, LAYERS, LONGEST = 64, 4, 2, 32
STEPS, PHRASINGS, TEMPERATURE = 1200, 3, 0.1
PIECES = 200  # of several letters, besides whole words
POLITE = ["please", "hey", "hello", "could you", "can you", "robot", "I would like you to", "now", "thanks", "would you"]


def read_phrases():
    """[(sentence, [templates], [held out])] of phrases.txt."""
    meanings = []
    for line in (HERE / "phrases.txt").read_text().splitlines():
        if line.startswith("= "):
            meanings.append((line[2:], [line[2:]], []))
        elif line.startswith("? "):
            meanings[-1][2].append(line[2:])
        elif line and not line.startswith("#"):
            meanings[-1][1].append(line)
    return meanings


def words_of(text):
    return re.findall("[a-z0-9]+", text.lower().replace("'", ""))


def make_vocabulary(meanings):
    """Token -> number: the padding, letters and digits, frequent pieces, whole words."""
    words = sorted({word for _, templates, _ in meanings for t in templates for word in words_of(t)})
    counts = Counter()
    for word in words:
        for size in (2, 3, 4):
            counts.update(("##" if at else "") + word[at : at + size] for at in range(len(word) - size + 1))
    letters = [mark + letter for mark in ("", "##") for letter in "abcdefghijklmnopqrstuvwxyz0123456789"]
    pieces = sorted(counts, key=lambda piece: (-counts[piece] * len(piece), piece))[:PIECES]
    tokens = ["[pad]"] + letters
    tokens += [token for token in dict.fromkeys(sorted(pieces) + words) if token not in letters]
    return {token: number for number, token in enumerate(tokens)}


def tokens_of(text, vocabulary):
    """As main.cpp does it."""
    numbers = []
    for word in words_of(text):
        at = 0
        while at < len(word):
            end = len(word)
            while (mark := "##" if at else "") + word[at:end] not in vocabulary:
                end -= 1
            numbers.append(vocabulary[mark + word[at:end]])
            at = end
    return numbers[:LONGEST]


def padded(sentences):
    """Lists of tokens -> tokens int64 [N,L], mask float32 [N,L], L the longest."""
    tokens = np.zeros((len(sentences), max(map(len, sentences))), np.int64)
    for row, sentence in zip(tokens, sentences):
        row[: len(sentence)] = sentence
    return tokens, (tokens != 0).astype(np.float32)


class Layer(nn.Module):
    """Attention and two dense layers, each added to what it read, normalised before."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.merge = nn.Linear(WIDTH, WIDTH)
        self.widen, self.narrow = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x, hidden):
        """x [N,L,64]; hidden [N,1,1,L]: 0, or minus a lot for what must not be looked at."""
        y = self.norm1(x)
        query, key, value = (self.heads(dense(y)) for dense in (self.query, self.key, self.value))
        weights = torch.softmax(query @ key.transpose(2, 3) / (WIDTH // HEADS) ** 0.5 + hidden, 3)
        x = x + self.dropout(self.merge((weights @ value).transpose(1, 2).flatten(2)))
        return x + self.dropout(self.narrow(nn.functional.gelu(self.widen(self.norm2(x)))))

    @staticmethod
    def heads(x):
        """[N,L,64] -> [N,4,L,16]"""
        return x.unflatten(2, (HEADS, WIDTH // HEADS)).transpose(1, 2)


class Embedding(nn.Module):
    """tokens [N,L], mask [N,L] -> embedding [N,64] of length 1."""

    def __init__(self, words):
        super().__init__()
        self.word, self.place = nn.Embedding(words, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.layer1, self.layer2 = Layer(), Layer()
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens, mask):
        x = self.word(tokens) + self.place.weight[: tokens.shape[1]]
        hidden = (mask[:, None, None] - 1) * 1e4
        x = self.norm(self.layer2(self.layer1(x, hidden), hidden))
        mean = (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return mean / mean.norm(dim=1, keepdim=True)


def phrase(templates, random):
    """A random phrasing, sometimes more polite, with a word left out, or mistyped."""
    choose = lambda match: str(random.choice(match.group(1).split("|")))
    words = re.sub(r"\{([^}]*)\}", choose, str(random.choice(templates))).split()
    if random.random() < 0.3:
        words.insert(0, str(random.choice(POLITE)))
    if len(words) > 3 and random.random() < 0.3:
        words.pop(random.integers(len(words)))
    if random.random() < 0.3:
        at = random.integers(len(words))
        word = list(words[at])
        where = random.integers(len(word))
        letter = chr(97 + random.integers(26))
        word[where : where + random.integers(0, 2)] = [letter] * random.integers(0, 2)
        words[at] = "".join(word)
    return " ".join(words)


def train(meanings, vocabulary, random):
    net = Embedding(len(vocabulary))
    optimizer = torch.optim.AdamW(net.parameters(), weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=STEPS)
    group = torch.arange(len(meanings)).repeat(PHRASINGS)
    same = (group[:, None] == group) & ~torch.eye(len(group), dtype=torch.bool)
    for step in range(STEPS):
        texts = [phrase(templates, random) for _ in range(PHRASINGS) for _, templates, _ in meanings]
        tokens, mask = map(torch.from_numpy, padded([tokens_of(text, vocabulary) or [1] for text in texts]))
        embedding = net(tokens, mask)
        likeness = (embedding @ embedding.T / TEMPERATURE).masked_fill(torch.eye(len(group), dtype=torch.bool), -1e4)
        loss = -torch.log_softmax(likeness, 1)[same].mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 200 == 199:
            print(f"step {step + 1:4d}  loss {loss:.3f}")
    return net.eval()


def export(net, path):
    """Writes opset 17 with N and L free."""
    torch.onnx.export(net, (torch.ones(2, 5, dtype=torch.int64), torch.ones(2, 5)), path, opset_version=17,
                      dynamo=False, input_names=["tokens", "mask"], output_names=["embedding"],
                      dynamic_axes={"tokens": {0: "N", 1: "L"}, "mask": {0: "N", 1: "L"}, "embedding": {0: "N"}})
    onnx.checker.check_model(onnx.load(path), full_check=True)


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # more threads would sum in another order
    torch.use_deterministic_algorithms(True)

    meanings = read_phrases()
    vocabulary = make_vocabulary(meanings)
    net = train(meanings, vocabulary, np.random.default_rng(SEED))
    export(net, HERE / "embedding.onnx")

    sentences = [sentence for sentence, _, _ in meanings]
    queries = [(k, query) for k, (_, _, held_out) in enumerate(meanings) for query in held_out]
    (HERE / "vocabulary.txt").write_text("\n".join(vocabulary) + "\n")
    (HERE / "sentences.txt").write_text("\n".join(sentences) + "\n")
    (HERE / "queries.txt").write_text("".join(f"{k}\t{query}\n" for k, query in queries))

    session = onnxruntime.InferenceSession(HERE / "embedding.onnx", providers=["CPUExecutionProvider"])
    embeddings = []
    for text in sentences + [query for _, query in queries]:
        tokens, mask = padded([tokens_of(text, vocabulary)])
        embeddings.append(session.run(["embedding"], {"tokens": tokens, "mask": mask})[0][0])
    embeddings = np.stack(embeddings)
    np.save(HERE / "onnxruntime.npy", embeddings)

    likeness = embeddings[len(sentences) :] @ embeddings[: len(sentences)].T
    places = [(-row).argsort().tolist().index(k) for row, (k, _) in zip(likeness, queries)]
    print(f"held out: {places.count(0)} of {len(queries)} queries right, {sum(p < 3 for p in places)} among the "
          f"first three; {len(vocabulary)} tokens, at most {max(len(tokens_of(q, vocabulary)) for _, q in queries)} "
          f"in a query")


if __name__ == "__main__":
    main()
