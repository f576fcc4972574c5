package limit

import "github.com/nextfree/pace/reserve"

func Named(err error, name func() string) error {
	late, ok := err.(*reserve.WaitError)
	if !ok || late.Limit != "" {
		return err
	}
	named := *late
	if named.Limit = name(); named.Limit == "" {
		return err
	}
	return &named
}
