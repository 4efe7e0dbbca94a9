"""Pictures of odd sizes as Pillow scales them. Run by hand it writes data/dataset/testdata/pillow.txt, to which Go's tests
hold Starling where there is no Pillow: python pictures.py > ../../../dataset/testdata/pillow.txt"""

import os
import random
import sys

import PIL
from PIL import Image

# From width and height to width and height: both directions, one alone, one pixel, up and down.
SIZES = [(50, 37, 28, 28), (37, 50, 28, 28), (50, 37, 61, 43), (13, 9, 28, 28), (9, 31, 5, 3), (31, 9, 5, 3), (41, 7, 8, 15), (7, 41, 8, 15), (28, 61, 28, 28),
         (61, 28, 28, 28), (28, 5, 28, 17), (1, 1, 3, 2), (3, 2, 1, 1), (1, 45, 2, 8), (45, 1, 8, 2), (300, 211, 17, 13), (211, 300, 17, 13), (29, 31, 28, 28), (31, 35, 28, 29),
         (5, 4, 5, 4), (64, 96, 32, 32), (65, 96, 32, 32), (64, 97, 32, 32)]


def picture(width, height, channels, seed):
    """Values that Go's test makes too: the high bytes of a linear congruence."""
    state, out = seed, bytearray()
    for _ in range(width * height * channels):
        state = (state * 1103515245 + 12345) % 2**31
        out.append(state >> 16 & 255)
    return Image.frombytes("L" if channels == 1 else "RGB", (width, height), bytes(out))


def scaled(image, width, height, channels):
    return image.convert("L" if channels == 1 else "RGB").resize((width, height), Image.Resampling.BILINEAR)


def check_all(s, work, only):
    import check

    if not "pictures".startswith(only):
        return
    check.report("pictures", f"another Pillow than requirements.txt's: {PIL.__version__}", int(f"pillow=={PIL.__version__}" not in open(
        os.path.join(os.path.dirname(__file__), "requirements.txt")).read()), 0)
    rng, asked, want = random.Random(5), [], []
    sizes = SIZES + [tuple(rng.randrange(1, 90) for _ in range(4)) for _ in range(400)] + [(rng.randrange(200, 900), rng.randrange(200, 900), 224, 224) for _ in range(12)]
    for i, (w, h, to_w, to_h) in enumerate(sizes):
        image, channels = picture(w, h, rng.choice((1, 3)), i), rng.choice((1, 3))
        path = os.path.join(work, f"picture-{i}.png")
        image.save(path)
        asked.append({"file": path, "width": to_w, "height": to_h, "channels": channels})
        want.append(scaled(image, to_w, to_h, channels))
    got = s.ask(op="fit", pictures=asked)
    wrong = 0
    for a, g, w in zip(asked, got, want, strict=True):
        planes = [b for plane in w.split() for b in plane.tobytes()]
        wrong += sum(x != y for x, y in zip(g, planes, strict=True))
    check.report("pictures", f"pixels of {len(sizes)} pictures that differ from Pillow", wrong, 0)
    check_logits(s, work)


def check_logits(s, work):
    """A ViT on pictures of other sizes than its own, as transformers reads them by Pillow."""
    import torch
    import transformers
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    import check

    config = transformers.ViTConfig(num_labels=3, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, image_size=28, patch_size=7, num_channels=3)
    torch.manual_seed(1)
    model = transformers.ViTForImageClassification(config).eval()
    check.randomize(model, 2)
    folder, own = os.path.join(work, "pictures"), os.path.join(work, "pictures-own")
    model.save_pretrained(folder)
    reader = ViTImageProcessorPil(size={"height": 28, "width": 28}, resample=Image.Resampling.BILINEAR)
    reader.save_pretrained(folder)
    s.run("import", "--base", folder, "--labels", "a,b,c", "--out", own)
    images = [picture(w, h, 3, i) for i, (w, h) in enumerate([(50, 37), (37, 50), (90, 200), (200, 90), (28, 99), (28, 28)])]
    with torch.no_grad():
        want = model(**reader(images, return_tensors="pt")).logits
    paths = []
    for i, image in enumerate(images):
        paths.append(os.path.join(work, f"vit-{i}.png"))
        image.save(paths[-1])
    check.report("pictures", "logits of a ViT on pictures of other sizes", check.relative(s.ask(op="logits", checkpoint=own, rank=0, files=paths), want))


if __name__ == "__main__":
    print(f"# Pictures of a linear congruence (data/dataset/scale_test.go) as Pillow {PIL.__version__} scales them: convert, then resize with BILINEAR.")
    print("# Written by lab/bench/interop/pictures.py: width, height, channels, seed, to width, to height, to channels, bytes row by row.")
    for i, (w, h, to_w, to_h) in enumerate(SIZES):
        has, to = ((1, 1), (3, 3), (3, 1), (1, 1))[i % 4]
        print(w, h, has, i, to_w, to_h, to, scaled(picture(w, h, has, i), to_w, to_h, to).tobytes().hex())
