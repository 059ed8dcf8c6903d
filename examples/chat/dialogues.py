"""What the chat example talks about: dialogues made by a grammar, with answers that follow from rules.

`random` is a random.Random. `dialogue(random)` makes one to train on, `held_out(random)` single questions that no dialogue to train on has:
sums of numbers, lists to turn round and facts to remember that the net has not seen together.
"""

NAMES = ("Ada Ben Carla David Emma Felix Greta Hugo Ida Jonas Karin Leo Mia Nils Olga Paul Rosa Sam Tina Uwe Vera Wim "
         "Yara Zoe").split()
CITIES = "Berlin Bern Cairo Dublin Lima London Madrid Oslo Paris Prague Rome Tokyo Vienna Zurich".split()
COLOURS = "red blue green yellow black white brown pink orange purple grey".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = ("January February March April May June July August September October November December").split()
THINGS = {"a banana": "yellow", "a lemon": "yellow", "the sun": "yellow", "snow": "white", "milk": "white",
          "the sky": "blue", "the sea": "blue", "grass": "green", "a frog": "green", "a cucumber": "green",
          "a tomato": "red", "blood": "red", "a cherry": "red", "coal": "black", "a raven": "black", "night": "black",
          "chocolate": "brown", "coffee": "brown", "a carrot": "orange", "a pumpkin": "orange", "a pig": "pink",
          "an elephant": "grey", "a plum": "purple"}
MIXED = {("blue", "yellow"): "green", ("red", "yellow"): "orange", ("blue", "red"): "purple", ("red", "white"): "pink",
         ("black", "white"): "grey", ("green", "red"): "brown"}
# legs, what it says (if anything), whether it can fly, whether it can swim
ANIMALS = {"dog": (4, "woof", 0, 1), "cat": (4, "meow", 0, 0), "cow": (4, "moo", 0, 0), "sheep": (4, "baa", 0, 0),
           "pig": (4, "oink", 0, 0), "horse": (4, "neigh", 0, 0), "duck": (2, "quack", 1, 1), "owl": (2, "hoo", 1, 0),
           "frog": (4, "croak", 0, 1), "bee": (6, "buzz", 1, 0), "raven": (2, "caw", 1, 0), "hen": (2, "cluck", 0, 0),
           "lion": (4, "roar", 0, 0), "mouse": (4, "squeak", 0, 0), "penguin": (2, None, 0, 1),
           "fish": (0, None, 0, 1), "snake": (0, None, 0, 0), "spider": (8, None, 0, 0), "ant": (6, None, 0, 0),
           "swan": (2, None, 1, 1), "whale": (0, None, 0, 1), "eagle": (2, None, 1, 0), "butterfly": (6, None, 1, 0),
           "crab": (10, None, 0, 1)}
SMALL_TALK = [
    (("Hello.", "Hi!", "Hey there.", "Good morning.", "Good evening."), "Hello! What would you like to know?"),
    (("How are you?", "How do you do?", "Are you well?"), "I am fine, thank you."),
    (("Who are you?", "What are you?", "What is your name?"), "I am a small net that likes to talk."),
    (("What can you do?", "What do you know?", "Help me."), "I know numbers, days, months, colours and animals."),
    (("Thank you.", "Thanks!", "That was nice."), "You are welcome."),
    (("Are you a human?", "Are you alive?", "Can you feel?"), "No, I am only a few numbers."),
    (("Tell me a joke.", "Make me laugh.", "Do you know a joke?"),
     "Why is six afraid of seven? Because seven ate nine."),
]
LARGEST = 20  # of what is added and subtracted


def the(animal):
    return ("an " if animal[0] in "aeo" else "a ") + animal


def capital(text):
    return text[0].upper() + text[1:]


def is_held_out(a, b):
    """One pair in eight, the same in either order."""
    return (min(a, b) * 37 + max(a, b) * 101) % 8 == 3


def arithmetic(random, held=False):
    while True:
        kind = random.choice(["plus", "minus", "times", "larger"])
        most = 10 if kind == "times" else LARGEST
        a, b = random.randint(0, most), random.randint(0, most)
        if kind == "minus":
            a, b = max(a, b), min(a, b)
        if kind == "larger" and a == b:
            continue
        # the difference is held out with the sum that it comes from, a product with none
        if kind == "times" and held:
            continue
        if kind == "times" or is_held_out(*((a - b, b) if kind == "minus" else (a, b))) == held:
            break
    if kind == "larger":
        word = random.choice(["larger", "smaller"])
        pick = max(a, b) if word == "larger" else min(a, b)
        return f"Which is {word}, {a} or {b}?", f"{pick} is {word} than {a + b - pick}."
    result = {"plus": a + b, "minus": a - b, "times": a * b}[kind]
    ask = random.choice(["What is {}?", "How much is {}?", "Tell me what {} is.", "{}?"])
    return ask.format(f"{a} {kind} {b}"), f"{a} {kind} {b} is {result}."


def counting(random, held=False):
    while True:
        a = random.randint(1, 19)
        b = a + random.randint(2, 7)
        if is_held_out(a, b) == held:
            break
    numbers = [str(n) for n in range(a, b + 1)]
    if random.random() < 0.3:
        return f"Count down from {b} to {a}.", ", ".join(reversed(numbers)) + "."
    return f"Count from {a} to {b}.", ", ".join(numbers) + "."


def backwards(random, held=False):
    """A list turned round; one in eight pairs of a first and a last word is held out."""
    while True:
        words = random.sample(random.choice([COLOURS, list(ANIMALS), NAMES]), random.randint(2, 4))
        if is_held_out(*(sum(map(ord, word)) for word in (words[0], words[-1]))) == held:
            break
    return f"Say {', '.join(words)} backwards.", ", ".join(words[::-1]) + "."


def calendar(random):
    names, kind = (DAYS, "day") if random.random() < 0.5 else (MONTHS, "month")
    at = random.randrange(len(names))
    word, step = random.choice([("after", 1), ("before", -1)])
    other = names[(at + step) % len(names)]
    ask = random.choice(["Which {k} comes {w} {n}?", "What {k} is {w} {n}?", "Tell me the {k} {w} {n}."])
    return ask.format(k=kind, w=word, n=names[at]), f"{other} comes {word} {names[at]}."


def colour(random):
    if random.random() < 0.35:
        (a, b), mixed = random.choice(list(MIXED.items()))
        if random.random() < 0.5:
            a, b = b, a
        ask = random.choice(["What do {} and {} make?", "What do you get when you mix {} and {}?", "Mix {} and {}."])
        return ask.format(a, b), f"{capital(a)} and {b} make {mixed}."
    thing = random.choice(list(THINGS))
    ask = random.choice(["What colour is {}?", "Which colour has {}?", "Tell me the colour of {}."])
    return ask.format(thing), f"{capital(thing)} is {THINGS[thing]}."


def animal(random):
    name = random.choice(list(ANIMALS))
    legs, says, flies, swims = ANIMALS[name]
    kind = random.choice(["legs", "says", "fly", "swim"])
    if kind == "says" and says:
        ask = random.choice(["What does {} say?", "Which sound does {} make?"])
        return ask.format(the(name)), f"{capital(the(name))} says {says}."
    if kind in ("fly", "swim"):
        able = flies if kind == "fly" else swims
        return (f"Can {the(name)} {kind}?", f"Yes, {the(name)} can {kind}." if able else f"No, {the(name)} cannot {kind}.")
    return f"How many legs does {the(name)} have?", f"{capital(the(name))} has {legs if legs else 'no'} legs."


def small_talk(random):
    questions, answer = random.choice(SMALL_TALK)
    return random.choice(questions), answer


# What the user tells, and what is asked about it later: (told, reply, [asked], answer), by kind.
FACTS = {
    "name": (NAMES, ["My name is {}.", "I am {}.", "Call me {}."], "Nice to meet you, {}.",
             ["What is my name?", "Who am I?", "Do you know my name?"], "Your name is {}."),
    "city": (CITIES, ["I live in {}.", "I come from {}."], "{} is a nice city.",
             ["Where do I live?", "Which city do I live in?"], "You live in {}."),
    "colour": (COLOURS, ["I like {}.", "My favourite colour is {}."], "I like {} too.",
               ["Which colour do I like?", "What is my favourite colour?"], "You like {}."),
    "pet": (list(ANIMALS), ["I have a pet {}.", "My favourite pet is my {}."], "I would like to see your {}.",
            ["Which pet do I have?", "What is my pet?"], "You have a {}."),
}
UNKNOWN = {"name": "You did not tell me your name.", "city": "You did not tell me where you live.",
           "colour": "You did not tell me what you like.", "pet": "You did not tell me about a pet."}
TOPICS, WEIGHTS = [arithmetic, counting, backwards, calendar, colour, animal, small_talk], [14, 2, 3, 2, 3, 4, 1]


def carelessly(random, question):
    """As people type: without capitals, without a full stop."""
    if random.random() < 0.3 and not question.startswith("I "):
        question = question[0].lower() + question[1:]
    if random.random() < 0.25:
        question = question.rstrip("?.!")
    return question


def topic(random):
    return random.choices(TOPICS, WEIGHTS)[0](random)


def dialogue(random):
    """[(question, answer)], one to five of them."""
    told, turns = {}, []
    for _ in range(random.randint(1, 5)):
        chance = random.random()
        kind = random.choice(list(FACTS))
        values, tells, reply, asks, answer = FACTS[kind]
        if chance < 0.18:
            told[kind] = random.choice(values)
            turn = random.choice(tells).format(told[kind]), reply.format(told[kind])
        elif chance < 0.36 and (told or random.random() < 0.3):
            if told and random.random() < 0.85:
                kind = random.choice(list(told))
                _, _, _, asks, answer = FACTS[kind]
            turn = random.choice(asks), answer.format(told[kind]) if kind in told else UNKNOWN[kind]
        elif chance < 0.39:
            whom = f", {told['name']}" if "name" in told else ""
            turn = random.choice(["Goodbye.", "Bye!", "See you."]), f"Goodbye{whom}!"
        else:
            turn = topic(random)
        turns.append((carelessly(random, turn[0]), turn[1]))
    return turns


HELD_OUT = [arithmetic, counting, backwards]


def held_out(random):
    """[(question, answer)]: one question of a topic with things that no training dialogue has together."""
    return [random.choice(HELD_OUT)(random, held=True)]
