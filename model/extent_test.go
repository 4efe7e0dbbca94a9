package model

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
)

// A ViT's images and patches may be wider than high: read, written under Hugging Face's
// keys and under ours as they came; a square one has the numbers that it always had.
func TestViTOfUnequalSides(t *testing.T) {
	for text, want := range map[string]struct {
		patches int
		kernel  [2]int
		written string // the keys of both configurations
	}{
		`"image_size":[12,6],"patch_size":[4,3]`: {6, [2]int{4, 3}, `"image_size":[12,6]`},
		`"image_size":[4,10],"patch_size":2`:     {10, [2]int{2, 2}, `"image_size":[4,10]`},
		`"image_size":6,"patch_size":[2,6]`:      {3, [2]int{2, 6}, `"patch_size":[2,6]`},
		`"image_size":[8,8],"patch_size":[4,4]`:  {4, [2]int{4, 4}, `"image_size":8`},
	} {
		c, err := ParseConfig([]byte(`{"model_type":"vit","hidden_size":12,` + text + `}`))
		if err != nil || c.ViT.Patches() != want.patches {
			t.Errorf("%s: %d patches, %v", text, c.ViT.Patches(), err)
			continue
		}
		for _, spec := range c.BaseTensors() {
			if spec.Name == ViTPatch+".weight" && [2]int(spec.Shape[2:]) != want.kernel {
				t.Errorf("%s: a kernel of %v", text, spec.Shape)
			}
		}
		for _, form := range []any{c, c.vitConfig()} {
			data, err := json.Marshal(form)
			if err != nil || !strings.Contains(string(data), want.written) {
				t.Errorf("%s is written as %s, %v", text, data, err)
			}
			if again, err := ParseConfig(data); err != nil || again != c {
				t.Errorf("%s is read back as %+v, %v", data, again, err)
			}
		}
		pixels, err := json.Marshal(c.preprocessor())
		if err != nil {
			t.Fatal(err)
		}
		if again := c; again.readViTPreprocessor(fstest.MapFS{preprocessorFile: {Data: pixels}}) != nil || again != c {
			t.Errorf("%s is refused", pixels)
		}
	}
	for text, want := range map[string]string{
		`"image_size":[12,6],"patch_size":4`:   "12 x 6",
		`"image_size":[12],"patch_size":4`:     "[height, width]",
		`"image_size":[1,2,3],"patch_size":1`:  "[height, width]",
		`"image_size":"big","patch_size":1`:    "[height, width]",
		`"image_size":[4,0],"patch_size":1`:    "image_size",
		`"image_size":[4,4],"patch_size":[4,]`: "config.json",
		`"image_size":4,"patch_size":[0,4]`:    "patch_size",
		`"image_size":[4,8192],"patch_size":4`: "image_size",
	} {
		_, err := ParseConfig([]byte(`{"model_type":"vit","hidden_size":12,` + text + `}`))
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
