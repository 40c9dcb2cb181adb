package view

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/partition"
)

// Change says which partitions are to own the slots, in place of what a map record says. It
// is made by whoever looks, and carried out by whoever may write.
type Change struct {
	Version uint64         // of that record
	Map     *partition.Map // that is wanted, of any epoch
}

// ErrChanged says that the map record is not the one any more that a change was made of.
var ErrChanged = errors.New("the partition map has changed meanwhile")

// Want is the change as an engine asks for it.
func (c Change) Want(now crawl.Partitioning) (*partition.Map, error) {
	if now.Record.Version != c.Version {
		return nil, ErrChanged
	}
	return c.Map, nil
}

// change is a Change in a request to a folder's owner.
type change struct {
	Version uint64 `json:"version"`
	Map     []byte `json:"map"` // as a partition.Map is stored
}

// maxChange is above what a map of the most slots takes in base64.
const maxChange = 1 << 20

// Repartition gives a change to the process that works on the view's folder. The errors are
// [ErrNoOwner], as for [View.Order], and [ErrChanged].
func (v *View) Repartition(ctx context.Context, c Change) error {
	m, err := c.Map.MarshalBinary()
	if err != nil {
		return err
	}
	_, err = post[nothing](ctx, v, "/partitions", change{c.Version, m}, changeErrors())
	return err
}

func changeErrors() told { return told{http.StatusConflict: ErrChanged} }

// decodeChange reads what is asked of POST /partitions.
func decodeChange(body []byte) (Change, error) {
	m := &partition.Map{}
	c, err := decodeOne[change](body)
	if err == nil {
		err = m.UnmarshalBinary(c.Map)
	}
	return Change{c.Version, m}, err
}

// FormerMap reads the map that was wanted before the last change, nil if none is kept.
func (v *View) FormerMap(ctx context.Context, l *Layout) (*partition.Map, error) {
	if len(l.Record.Former) == 0 {
		return nil, nil
	}
	return v.mapOf(ctx, &l.Record, l.Record.Former[0])
}

// Loads are how much there is to do in each slot: the URLs that are pending, or, if none is
// in the whole crawl, those that are known, which may be asked for again. It reads all
// manifests.
func (v *View) Loads(ctx context.Context) ([]float64, error) {
	regions, err := v.regions(ctx)
	if err != nil {
		return nil, err
	}
	pending, known := make([]float64, v.division.first.Slots()), make([]float64, v.division.first.Slots())
	busy := false
	for _, r := range regions {
		lists := [][]blobschema.SlotSummary{r.at.slots}
		if r.given != nil {
			lists = append(lists, r.given.State)
		}
		if r.next != nil {
			lists = append(lists, r.next.slots)
		}
		for _, sum := range slices.Concat(lists...) {
			if !r.slots.Has(sum.Slot) {
				continue
			}
			pending[sum.Slot] += float64(sum.Pending) + float64(sum.Unexamined)
			known[sum.Slot] += float64(sum.Known) + float64(sum.Unexamined)
			busy = busy || sum.Pending+sum.Unexamined > 0
		}
	}
	if busy {
		return pending, nil
	}
	return known, nil
}
