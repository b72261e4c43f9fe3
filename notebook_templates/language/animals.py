"""Questions about young animals, with answers: a small instruction data set, made on the spot.

A model that was never asked anything learns it in a minute. Each question is asked in several ways,
so those that are held out can be answered from the others.
"""

import random

from conversations import ANSWERS, ChatRecord, Turn

NAME = "animals"
_YOUNG = {
    "cow": "calf",
    "dog": "puppy",
    "cat": "kitten",
    "horse": "foal",
    "sheep": "lamb",
    "goat": "kid",
    "lion": "cub",
    "duck": "duckling",
    "hen": "chick",
    "deer": "fawn",
    "swan": "cygnet",
    "frog": "tadpole",
}
_QUESTIONS = (
    "What is a young {animal} called?",
    "How do you call the young of a {animal}?",
    "Name the young of a {animal}.",
    "A {animal} has young: what is one of them?",
    "What was a {animal} when it was small?",
    "Tell me the word for a young {animal}.",
    "Which animal becomes a {animal}?",
    "What does a {animal} look after?",
)


def conversations(seed: int) -> list[ChatRecord]:
    """Make them: each question once, a fourth of them after another one, as a second turn."""
    chance = random.Random(seed)  # noqa: S311  # nobody is to guess it, all are to have the same
    asked = [
        (question.format(animal=animal), f"It is a {young}.")
        for question in _QUESTIONS
        for animal, young in _YOUNG.items()
    ]
    chance.shuffle(asked)
    found = []
    for number, last in enumerate(asked, start=1):
        pairs = [last] if number % 4 else [chance.choice(asked), last]
        turns = [
            Turn(role, content)
            for pair in pairs
            for role, content in zip(("user", ANSWERS), pair, strict=True)
        ]
        found.append(ChatRecord(tuple(turns), f"{NAME}, record {number}"))
    return found
