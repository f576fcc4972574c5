package postgres

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/internal/within"
)

func failed(op, table string, err error, written bool) error {
	if state(err) == "42P01" {
		err = fmt.Errorf("%w; Create makes it", err)
	}
	return &shared.StoreError{
		Store: "postgres", Op: op, What: fmt.Sprintf("the table %q", table), Err: err, Written: written,
	}
}

// state returns an error's SQLSTATE, five characters; "": it is not the server's error.
func state(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// perhapsWritten is false if the server says that the statement failed, unless it was ending.
func perhapsWritten(err error) bool {
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "dial" || errors.Is(err, within.ErrHang) {
		return false
	}
	s := state(err)
	for _, class := range []string{"08", "57P", "58", "XX", "40003"} {
		if strings.HasPrefix(s, class) {
			return true
		}
	}
	return s == ""
}

func again(err error) bool {
	s := state(err)
	return s == "40001" || s == "40P01"
}

// wrong reports whether waiting does not cure an error. 42P05 and 26000 are a pooler's: another connection may do.
func wrong(err error) bool {
	s := state(err)
	return s != "42P05" && strings.HasPrefix(s, "42") || strings.HasPrefix(s, "28") || s == "3D000" || s == "3F000"
}
