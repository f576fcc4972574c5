// Package bykey implements limiters by key, for reserve/keyed and inbound.
package bykey
