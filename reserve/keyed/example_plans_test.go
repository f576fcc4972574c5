package keyed_test

import (
	"database/sql"
	"errors"
	"math"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/window"
)

// Plans from a database: a changed plan reaches a tenant within a minute.
func ExampleWithTTL() {
	var db *sql.DB
	plans := map[string]*reserve.Policy{
		"free":      reserve.Must(window.Policy(100, time.Minute)),
		"paid":      reserve.Must(window.Policy(6000, time.Minute)),
		"unlimited": reserve.Must(pace.Bursty(math.Inf(1))),
	}
	perTenant := keyed.New(func(tenant string) (*reserve.Policy, error) {
		var plan string
		err := db.QueryRow("SELECT plan FROM tenants WHERE id = $1", tenant).Scan(&plan)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return nil, keyed.ErrUnknown // no such tenant, or none any more
		case err != nil:
			return nil, err
		}
		return plans[plan], nil
	}, keyed.WithTTL(time.Minute))
	_ = perTenant
}
