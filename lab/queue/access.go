package queue

import (
	"crypto/rand"

	"github.com/starling-fl/starling/coordinator/natsaccess"
)

// Access holds our credentials at a NATS cluster.
type Access = natsaccess.Access

// workerPublishes are the subjects that a worker sends to, and no others: it takes items
// and settles them, reads the store and says which runs live, and publishes results. It
// makes no items, reads nobody's results and changes nothing in the store but what its
// results are too long for. docs/SIMULATE.md lists them for those who have a cluster.
var workerPublishes = []string{
	"$JS.API.INFO",
	"$JS.API.STREAM.INFO." + itemsStream,
	"$JS.API.CONSUMER.CREATE." + itemsStream + "." + workersName,
	"$JS.API.CONSUMER.MSG.NEXT." + itemsStream + "." + workersName,
	"$JS.ACK." + itemsStream + "." + workersName + ".>",
	"$JS.API.STREAM.INFO.OBJ_" + blobsBucket,
	"$JS.API.STREAM.MSG.GET.OBJ_" + blobsBucket,
	"$JS.API.DIRECT.GET.OBJ_" + blobsBucket + ".>",
	"$JS.API.CONSUMER.CREATE.OBJ_" + blobsBucket + ".>",
	"$JS.API.CONSUMER.DELETE.OBJ_" + blobsBucket + ".>",
	"$JS.API.STREAM.INFO.KV_" + runsBucket,
	"$JS.API.STREAM.MSG.GET.KV_" + runsBucket,
	"$JS.API.DIRECT.GET.KV_" + runsBucket + ".>",
	"$JS.API.STREAM.INFO.OBJ_" + sumsBucket,
	"$JS.API.STREAM.MSG.GET.OBJ_" + sumsBucket,
	"$JS.API.DIRECT.GET.OBJ_" + sumsBucket + ".>",
	"$O." + sumsBucket + ".>",
	"$JS.FC.>",
	resultsPrefix + "*",
}

// users are who an embedded server knows: this process, which may do everything, and
// workers.
func users() (own, worker natsaccess.User) {
	own = natsaccess.User{Name: "simulation", Password: rand.Text()}
	worker = natsaccess.User{Name: "worker", Password: rand.Text(), Publish: workerPublishes, Subscribe: []string{"_INBOX.>"}}
	return own, worker
}
