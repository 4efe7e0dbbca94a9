package participation

import (
	"context"
	"errors"
	"testing"

	"github.com/starling-fl/starling/edge/leak"
)

// What was found before the time ended counts; a trial that came to nothing says why it ended.
func TestLeakedInTime(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	late := errors.New("too late")
	end(late)
	r := &leak.Report{Trials: 1, Attacks: []leak.Attack{{Of: leak.Tokens, Found: 3, All: 4, Share: 0.75}}}
	if found, err := leaked(ctx, r, nil); err != nil || found.Tokens != 0.75 || found.Line == "" {
		t.Errorf("%+v, %v", found, err)
	}
	if found, err := leaked(ctx, nil, ctx.Err()); !errors.Is(err, late) {
		t.Errorf("%+v, %v", found, err)
	}
}
