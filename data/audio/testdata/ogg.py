"""Makes ogg.json and the .ogg and .opus files beside it: what Xiph's own encoders write and its decoders read
(Debian's vorbis-tools 1.4.2 and opus-tools 0.2, with libvorbis 1.3.7 and libopus 1.3.1). The samples are tones
that change, noise and clicks, so that both lengths of Vorbis's block are there; the Opus files are SILK alone, SILK
with CELT, and CELT alone. Run it in this folder."""

import base64, json, math, random, struct, subprocess, wave

VORBIS = ["oggenc", "-Q", "-s", "1"]
OPUS = ["opusenc", "--quiet", "--serial", "1"]
CASES = {
    "mono8k.ogg": (8000, 1, 3200, VORBIS + ["-q", "1"]),
    "stereo44k.ogg": (44100, 2, 5000, VORBIS + ["-q", "2"]),
    "mono16k.ogg": (16000, 1, 5000, VORBIS + ["-q", "-1"]),
    "voice.opus": (8000, 1, 1200, OPUS + ["--speech", "--bitrate", "12"]),
    "wide.opus": (48000, 1, 4800, OPUS + ["--speech", "--bitrate", "28"]),
    "stereo.opus": (48000, 2, 2880, OPUS + ["--music", "--bitrate", "96"]),
}

out = {}
for name, (rate, channels, n, encoder) in CASES.items():
    rng = random.Random(name)
    rows = []
    for i in range(n):
        row = []
        for c in range(channels):
            v = 0.3 * math.sin(2 * math.pi * (300 + 200 * c + i * 0.05) * i / rate) + 0.02 * rng.gauss(0, 1)
            if i % 1500 > 1470:
                v += 0.5 * rng.uniform(-1, 1)
            row.append(int(max(-1, min(1, v)) * 32767))
        rows.append(row)
    with wave.open("/tmp/in.wav", "wb") as w:
        w.setnchannels(channels), w.setsampwidth(2), w.setframerate(rate)
        w.writeframes(b"".join(struct.pack("<h", v) for row in rows for v in row))
    if encoder is VORBIS or encoder[0] == "oggenc":
        subprocess.run(encoder + ["-o", name, "/tmp/in.wav"], check=True)
        subprocess.run(["oggdec", "-Q", "-b", "16", "-o", "/tmp/out.wav", name], check=True)
    else:
        subprocess.run(encoder + ["/tmp/in.wav", name], check=True)
        subprocess.run(["opusdec", "--quiet", "--no-dither", "--rate", "48000", name, "/tmp/out.wav"], check=True)
    with wave.open("/tmp/out.wav") as w:
        frames = w.readframes(w.getnframes())
        out[name] = {"rate": w.getframerate(), "channels": w.getnchannels(), "samples": base64.b64encode(frames).decode()}
json.dump(out, open("ogg.json", "w"), indent=1)
