package main

import (
	"math"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/model"
)

// picture is a file that is brought to a size.
type picture struct {
	File     string `json:"file"`
	Width    int    `json:"width"`
	Height   int    `json:"height"`
	Channels int    `json:"channels"`
}

// images are the request's, as pixels or as files.
func (r request) images(lay *model.Layout) ([]*dataset.Image, error) {
	var all []*dataset.Image
	v := lay.Config.ViT
	for _, p := range r.Pixels {
		all = append(all, &dataset.Image{Width: v.ImageSize.Width, Height: v.ImageSize.Height, Channels: v.Channels, Pixels: p})
	}
	for _, file := range r.Files {
		m, err := dataset.OpenImage(file)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// fit are pictures at a size: levels of 0..255, one channel after the other.
func fit(r request) ([][]int, error) {
	out := make([][]int, len(r.Pictures))
	for i, p := range r.Pictures {
		m, err := dataset.OpenImage(p.File)
		if err == nil {
			m, err = m.Decoded()
		}
		if err != nil {
			return nil, err
		}
		for _, x := range m.Fit(p.Width, p.Height, p.Channels).Pixels {
			out[i] = append(out[i], int(math.Round(float64(255*x))))
		}
	}
	return out, nil
}
