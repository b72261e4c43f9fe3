"""Pretrained networks over ImageNet's validation images: nothing of both can be had here.

So the networks are held against torchvision 0.28.0 and timm 1.0.31, which were given the same
numbers as weights and the same picture once. The images are drawn, in folders as ImageNet's are,
and one network learns to tell a few kinds of them apart.
"""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.instance import ROOT

pytestmark = pytest.mark.usefixtures("without_gpu")
BENCHMARKS = ROOT / "notebook_templates" / "benchmarks"
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def python(python_of: Callable[[str], Path]) -> Path:
    return python_of("pytorch")


@pytest.fixture(scope="module")
def ask(python: Path) -> Ask:
    """Run a program beside the benchmarks' modules; return what it printed last."""

    def answer(program: str, *arguments: object) -> Any:
        argv = [str(python), "-B", "-c", program, *map(str, arguments)]
        done = subprocess.run(
            argv, cwd=BENCHMARKS, capture_output=True, text=True, check=False, timeout=240
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return answer


# Of an image of 128 pixels the first, second, 501st and last logit, over their deviation, from the
# published programs: `model.load_state_dict(made(...)); model.eval()`.
PUBLISHED = {
    "resnet101": [1.83, 1.4673, -0.5664, -1.7485],
    "alexnet": [-0.4996, 1.2318, -1.0167, 0.5012],
    "googlenet": [1.3413, 0.3279, -1.2082, -0.4277],
    "inception3": [0.9498, 0.8113, 0.5038, 0.5212],
    "inception4": [0.4824, 0.4732, 0.4305, 0.504],
}
# What is published of the others, which differ from one above in how many layers they have: the
# number of tensors, and for VGG, whose classifier is large, where the layers are.
TENSORS = {"resnet50": 320, "resnet152": 932}
VGG = {
    "vgg16": (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28),
    "vgg19": (0, 2, 5, 7, 10, 12, 14, 16, 19, 21, 23, 25, 28, 30, 32, 34),
}
# Of one picture the first, a last and a middle pixel, and the deviation of the red ones, from
# `weights.transforms()` of torchvision and timm's `create_transform`; GoogLeNet's and Inception
# v3's after their `transform_input`.
PREPARED = {
    "resnet50-0676ba61.pth": [0.4166, -0.0399, 1.3677, 0.7015],
    "resnet50-11ad3fa6.pth": [0.8104, -0.1275, 0.9145, 0.6368],
    "vgg16.safetensors": [0.4166, -0.0399, 1.3677, 0.7015],
    "googlenet-1378be20.pth": [0.1608, -0.1059, 0.4275, 0.3213],
    "inception_v3_google-0cc3c7bd.pth": [0.1608, 0.0196, 0.0824, 0.3867],
    "inception_v4.tf_in1k.safetensors": [-0.0353, 0.0353, 0.4353, 0.4699],
}
# Drawings that the network has learned to tell apart, and the classes that they stand for.
KINDS = {"cross": 7, "disc": 130, "dots": 611, "stripes": 998}
IMAGES_OF_A_CLASS = 16
CALIBRATION = 2, 8  # batches, and images in each
ASK = """
import io, json, os, random, sys, tempfile, zlib
from pathlib import Path
import numpy as np, safetensors.torch, torch
from PIL import Image
from architectures import networks, published_names
from imagenet import weights
sys.path.append("../vision")
import shapes as drawings

BLOCK = np.random.RandomState(1).standard_normal(100003).astype(np.float32)

def made(shapes):
    # Numbers that follow from a tensor's published name.
    found = {}
    for name, shape in shapes.items():
        values = np.resize(np.roll(BLOCK, zlib.crc32(name.encode()) % len(BLOCK)), tuple(shape))
        if name.endswith("running_var"):
            values = 1 + abs(values) / 10
        elif name.endswith("weight") and len(shape) > 1:
            values = values * np.float32((2 / np.prod(shape[1:])) ** 0.5)
        else:
            values = values / 10 + name.endswith("weight")
        found[name] = torch.from_numpy(np.asarray(values, np.float32))
        if name.endswith("num_batches_tracked"):
            found[name] = torch.tensor(0)
    return found

def shapes(model):
    with torch.device("meta"):
        network = networks.build(model)
    parts = published_names.pairs(model)
    return {
        f"{parts[part]}.{leaf}": tensor.shape
        for name, tensor in network.state_dict().items()
        for part, _, leaf in [name.rpartition(".")]
    }

def logits(model, image):
    there = made(shapes(model))
    there["aux1.fc1.bias"] = torch.zeros(3)  # of a head for training, which is left alone
    with torch.inference_mode():
        found = weights.filled(model, there, model)(image)[0]
    return (found / found.std())[[0, 1, 500, 999]].tolist()

def prepared(name, picture):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, name)
        if name == "inception_v4.tf_in1k.safetensors":  # as Hugging Face has it, in a folder
            file = Path(folder, file.stem, "model.safetensors")
            file.parent.mkdir()
        file.touch()
        model = name.split("-")[0].split(".")[0].replace("_v", "").replace("_google", "")
        image = weights.found(Path(folder), model).preparation.image(picture)
    pixels = image[0, 0, 0], image[1, -1, 0], image[2, 100, 57], image[0].std(ddof=1)
    return [float(one) for one in pixels]

def drawn(seed, height, width, kind):
    written = io.BytesIO()
    pixels = np.random.RandomState(seed).randint(0, 256, (height, width, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(written, kind)
    return written.getvalue()

def drawing(kind, chance):
    written = io.BytesIO()
    drawings.drawn(drawings.KINDS[kind], chance).save(written, "JPEG", quality=95)
    return written.getvalue()

# AlexNet with random convolutions, whose last layer has learned from what they make of drawings, by
# least squares: 1 at a drawing's own class, 0 at the other kinds', -1 at classes never drawn.
def taught(kinds, each, chance):
    torch.manual_seed(1)
    network = networks.build("alexnet").eval()
    preparation = weights.NETWORKS["alexnet"].preparation
    numbers = [*kinds.values()] * each
    pixels = [preparation.image(drawing(k, chance)) for _ in range(each) for k in kinds]
    right = torch.full((len(numbers), 1000), -1.0)
    right[:, [*kinds.values()]] = 0
    right[range(len(numbers)), numbers] = 1
    with torch.inference_mode():
        seen = network[:-1](torch.from_numpy(np.stack(pixels)))
        middle = seen.mean(0)
        weight = torch.linalg.lstsq(seen - middle, right - right.mean(0), driver="gelsd").solution.T
        network[-1].weight.copy_(weight)
        network[-1].bias.copy_(right.mean(0) - weight @ middle)
    names = published_names.pairs("alexnet")
    return {
        f"{names[part]}.{leaf}": tensor
        for name, tensor in network.state_dict().items()
        for part, _, leaf in [name.rpartition(".")]
    }

# The kinds take turns in the order of the files' names.
def make(folder, kinds, each):
    for number in range(1000):
        (folder / "val" / f"n{number:08d}").mkdir(parents=True)
    chance = random.Random(1)
    for image in range(each):
        for kind, number in kinds.items():
            file = folder / "val" / f"n{number:08d}" / f"{image:04}-{number}.JPEG"
            file.write_bytes(drawing(kind, chance))
    there = folder / "weights"
    there.mkdir()
    # As old files are: without zip around it.
    alexnet = there / "alexnet-owt-7be5be79.pth"
    torch.save(taught(kinds, 20, random.Random(2)), alexnet, _use_new_zipfile_serialization=False)
    few = {"fc.bias": torch.zeros(10)}
    torch.save(few, there / "resnet50.pth")
    torch.save(few, there / "vgg16-397923af.pth")
    safetensors.torch.save_file(few, there / "vgg19.safetensors")
    wrong = {name: torch.zeros(()) for name in shapes("inception3")}
    wrong["fc.bias"] = torch.zeros(1000)
    safetensors.torch.save_file(wrong, there / "inception_v3.safetensors")
    (there / "googlenet.safetensors").write_bytes(b"")
    torch.save([1], there / "resnet152-394f9c45.pth")
    for name in ("resnet101-63fe2227.pth", "resnet101-cd907fc2.pth"):
        (there / name).touch()

def planned(folder, parameters):
    # The first two cells of the notebook, which say how the program is to be started.
    os.environ["HOME"] = str(folder)
    (folder / "templates").symlink_to(Path.cwd().parent)
    cells = json.loads(Path("inference.ipynb").read_text())["cells"]
    codes = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    there = {}
    exec(codes[0], there)
    there |= parameters
    exec(codes[1], there)
    return there["plan"].settings

asked = json.loads(sys.argv[1])
image = torch.from_numpy(np.resize(BLOCK, (1, 3, 128, 128)).copy())
picture = drawn(2, 307, 403, "PNG")
make(Path(sys.argv[2]), asked["kinds"], asked["images_of_a_class"])
print(json.dumps({
    "logits": {model: logits(model, image) for model in asked["logits"]},
    "names": {model: sorted(shapes(model)) for model in asked["names"]},
    "prepared": {name: prepared(name, picture) for name in asked["prepared"]},
    "planned": planned(Path(sys.argv[2]), asked["planned"]),
}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("imagenet")


@pytest.fixture(scope="module")
def answers(ask: Ask, folder: Path) -> Any:
    """What the networks and pictures give; all in one process, as each takes long to begin."""
    asked = {
        "logits": [*PUBLISHED],
        "names": [*TENSORS, *VGG],
        "prepared": [*PREPARED],
        "kinds": KINDS,
        "images_of_a_class": IMAGES_OF_A_CLASS,
        "planned": {
            "imagenet_dir": "~",
            "weights_dir": "~/weights",
            "calibration_batches": CALIBRATION[0],
            "calibration_batch": CALIBRATION[1],
            "batches": "",
        },
    }
    return ask(ASK, json.dumps(asked), folder)


def test_published_weights_give_the_published_programs_logits(answers: Any) -> None:
    assert answers["logits"] == {
        name: pytest.approx(those, abs=1e-3) for name, those in PUBLISHED.items()
    }
    names = answers["names"]
    assert {model: len(names[model]) for model in TENSORS} == TENSORS
    for model, features in VGG.items():
        layers = [f"features.{n}" for n in features] + [f"classifier.{n}" for n in (0, 3, 6)]
        assert names[model] == sorted(f"{n}.{of}" for n in layers for of in ("bias", "weight"))


def test_a_picture_is_prepared_as_the_weights_publisher_does(answers: Any) -> None:
    assert answers["prepared"] == {
        name: pytest.approx(those, abs=1e-4) for name, those in PREPARED.items()
    }


# A class's number is its name's place; the devkit's own numbers run the other way here.
LABELS = """
import json, sys
from pathlib import Path
import numpy as np, scipy.io
from imagenet import validation

folder = Path(sys.argv[1])
names = [f"n{7 * number:08d}" for number in range(1000)]
classes = [999, 0, 41]
stems = [f"ILSVRC2012_val_{number:08d}" for number in range(1, 1001)]
of_all = classes + [number for number in range(1000) if number not in classes]

flat = folder / "flat"
flat.mkdir()
for stem in stems[:3]:
    (flat / f"{stem}.JPEG").touch()
kaggle = folder / "LOC_val_solution.csv"
kaggle.write_text("ImageId,PredictionString\\n" + "".join(
    f"{stem},{names[number]} 85 1 499 272 {names[number]} 1 2 3 4\\n"
    for stem, number in zip(stems, of_all)))
caffe = folder / "caffe" / "val.txt"
caffe.parent.mkdir()
caffe.write_text("".join(f"{stem}.JPEG {number}\\n" for stem, number in zip(stems, of_all)))
from_one = folder / "from_one.txt"
from_one.write_text("".join(f"{stem}.JPEG {number + 1}\\n" for stem, number in zip(stems, of_all)))
devkit = folder / "ILSVRC2012_devkit_t12"
(devkit / "data").mkdir(parents=True)
truth = devkit / "data" / "ILSVRC2012_validation_ground_truth.txt"
truth.write_text("".join(f"{1000 - number}\\n" for number in of_all))
group = ("n99999999", 2)
kinds = [(name, 0) for name in reversed(names)] + [group]
fields = [("ILSVRC2012_ID", object), ("WNID", object), ("num_children", object)]
synsets = np.array([(n, name, many) for n, (name, many) in enumerate(kinds, 1)], fields)
scipy.io.savemat(devkit / "data" / "meta.mat", {"synsets": synsets.reshape(-1, 1)})
in_classes = folder / "classes" / "val"
for name in names:
    (in_classes / name).mkdir(parents=True)
for stem, number in zip(stems, classes):
    (in_classes / names[number] / f"{stem}.JPEG").touch()

def told(*arguments):
    try:
        return {path.name: number for path, number in validation.found(*arguments)}
    except validation.ImagenetError as error:
        return str(error)

answers = {
    "classes": told(in_classes.parent),
    "kaggle": told(flat, kaggle),
    "caffe": told(flat, caffe),
    "devkit": told(flat, devkit),
    "from one": told(flat, from_one),
    "numbers alone": told(flat, truth),
    "both": told(in_classes, caffe),
}
kaggle.rename(folder / "elsewhere.csv")
answers["beside"] = told(flat)
devkit.rename(folder / "devkit")
answers["none"] = told(flat)
caffe.write_text(caffe.read_text().replace(stems[1], "another"))
answers["lacking"] = told(flat, caffe)
(in_classes / names[3]).rmdir()
answers["a class"] = told(in_classes)
print(json.dumps(answers))
"""


def test_labels_are_read_in_each_form_and_another_is_refused(ask: Ask, tmp_path: Path) -> None:
    told = ask(LABELS, tmp_path)
    right = {f"ILSVRC2012_val_0000000{n}.JPEG": label for n, label in ((1, 999), (2, 0), (3, 41))}
    for form in ("classes", "kaggle", "caffe", "devkit", "beside"):
        assert told[form] == right, form
    assert "has classes up to 1,000; they count from 0 to 999" in told["from one"]
    assert "whose classes are in another order" in told["numbers alone"]
    assert "labels must be empty" in told["both"]
    assert "no list of labels lies beside them" in told["none"]
    assert "has no label for ILSVRC2012_val_00000002.JPEG (1 without)" in told["lacking"]
    assert "has 999 folders of classes;" in told["a class"]


CHOSEN = """
import json
from pathlib import Path
from imagenet import accuracy, validation

# In class folders, whose order is another than that of the files' names.
pictures = [(Path(f"n{n % 3}", f"val_{n:02d}.JPEG"), n % 3) for n in range(12)]
pictures.sort()

def told(most, seed=1, there=pictures, batches=2):
    try:
        chosen = accuracy.chosen(there, batches, 3, most, seed)
    except validation.ImagenetError as error:
        return str(error)
    return [[int(path.stem[4:]) for path, _ in part] for part in (chosen.calibration, chosen.test)]

answers = {
    "all": told(0), "some": told(3), "others": told(3, seed=2), "more": told(7),
    "too few": told(0, there=pictures[:6]),
}
print(json.dumps(answers))
"""


def test_the_first_images_calibrate_and_only_the_others_are_tested(ask: Ask) -> None:
    told = ask(CHOSEN)
    first, others = [0, 1, 2, 3, 4, 5], [6, 9, 7, 10, 8, 11]
    assert told["all"] == [first, others]
    assert told["more"] == [first, others]
    for drawn in (told["some"], told["others"]):
        assert drawn[0] == first
        assert len(drawn[1]) == 3
        assert set(drawn[1]) < set(others)
    assert told["some"] != told["others"]
    assert "need 6 images, and others" in told["too few"]
    assert told["too few"].rstrip(".").endswith("there are 6")


LEFT_OUT = {
    "resnet50": "resnet50.pth is for 10 classes; ImageNet has 1,000",
    "resnet101": "has several of it, resnet101-63fe2227.pth, resnet101-cd907fc2.pth",
    "resnet152": "resnet152-394f9c45.pth holds no state_dict",
    "vgg16": "vgg16-397923af.pth does not fit: it lacks classifier.0.bias and 31 more",
    "vgg19": "vgg19.safetensors does not fit: it lacks classifier.0.bias and 37 more",
    "googlenet": "googlenet.safetensors cannot be read",
    "inception3": "does not fit: Conv2d_1a_3x3.bn.bias is (), in the network (32,)",
    "inception4": "has no weights of it, such as inception_v4.tf_in1k.safetensors",
}


@pytest.fixture(scope="module")
def measured(answers: Any, python: Path, folder: Path) -> tuple[Any, str]:
    """Run the program as the notebook plans it; return its summary, and what it printed."""
    results = folder / "results"
    argv: list[str | Path] = [python, "-B", "inference.py", "--results", results]
    for name, value in (answers["planned"] | {"threads": 1}).items():
        argv += [f"--{name.replace('_', '-')}", str(value)]
    done = subprocess.run(
        argv, cwd=BENCHMARKS, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    # The network as ONNX is as large as its weights.
    assert not (results / "alexnet").exists()
    return json.loads((results / "summary.json").read_text()), done.stdout


def test_lower_precision_costs_a_network_that_has_learned_a_few_points(
    measured: tuple[Any, str],
) -> None:
    (part,) = measured[0]["parts"]
    calibrated = CALIBRATION[0] * CALIBRATION[1]
    assert part["network"] == "alexnet"
    assert part["calibration_images"] == calibrated
    assert part["images"] == len(KINDS) * IMAGES_OF_A_CLASS - calibrated
    assert part["published"] == pytest.approx([0.56522, 0.79066])
    exact = part["top1"]["fp32"]
    assert exact > 0.85  # chance: 0.25 of those that occur, 0.001 of all
    assert part["top1"] == pytest.approx(dict.fromkeys(("fp32", "bf16", "int8"), exact), abs=0.05)
    assert part["top5"] == dict.fromkeys(part["top1"], 1)  # it never takes a class not drawn


def test_what_cannot_be_used_is_named_and_the_others_are_measured(
    measured: tuple[Any, str],
) -> None:
    summary, printed = measured
    left_out = summary["figures"]["left_out"]
    assert list(left_out) == list(LEFT_OUT)
    for network, words in LEFT_OUT.items():
        assert words in left_out[network]
        assert f"{network} is left out: " in printed
