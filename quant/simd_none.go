package quant

func nf4EncodeFast(codes []byte, scales, x []float32) (done int) { return 0 }

func nf4DecodeFast(dst []float32, codes []byte, scales []float32) (done int) { return 0 }
