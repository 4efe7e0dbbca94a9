// Pictures as pixels: the browser's own decoders make them, which take no room in the
// program and read what this browser shows.

/** A picture's pixels, row by row: red, green, blue and 255. What is transparent is on black, as on every device. */
export async function decode(picture: Blob): Promise<{ width: number; height: number; pixels: Uint8Array }> {
  if (typeof OffscreenCanvas !== "function") throw new Error("this browser cannot read pictures in a worker");
  // The numbers of the file, not what a screen makes of its colour profile.
  const bitmap = await createImageBitmap(picture, { colorSpaceConversion: "none" });
  const { width, height } = bitmap;
  const drawn = new OffscreenCanvas(width, height).getContext("2d", { alpha: false, willReadFrequently: true });
  if (!drawn) throw new Error(`a picture of ${width} x ${height} is too large for this browser`);
  drawn.drawImage(bitmap, 0, 0);
  bitmap.close();
  return { width, height, pixels: new Uint8Array(drawn.getImageData(0, 0, width, height).data.buffer) };
}
