// Package model holds what a federated fine-tuning job exchanges about a
// model: its configuration, the names and shapes of its tensors, the adapter
// (what is trained), the slices of that adapter at a rank, and the file formats
// (safetensors, Hugging Face and PEFT folders). It runs nothing: model/nn turns
// the same description into training graphs.
//
// [LoadBaseDir] reads a base, [NewLayout] says what a [Method] trains of it, and
// [NewAdapter] makes that.
//
// Bases are of the families that [ModelTypes] lists (BERT, T5, ViT, Llama, wav2vec
// 2.0 and others), in the Hugging Face tensor naming. Methods are those of
// [MethodNames]: LoRA (Hu et al. 2021) on the linear maps that are named, adapters,
// biases, the head alone, everything. Slices of LoRA are those of DyLoRA (Valipour
// et al. 2022): at rank b an adapter of rank r_max is used as A[:b,:] and B[:,:b],
// scaled by s_b (Method.Scale).
//
// Threat model: files, bases and checkpoints may come from strangers. Every
// decoder bounds what it allocates by the length of its input or by a stated
// limit before it allocates; shapes are checked against the configuration and
// refused with the name of the tensor. Nothing here is secret.
package model
