// Package engine implements a limiter: its lock, its clock, the pause, and the callers that sleep. Types of package
// reserve are defined as those here. A conversion of the pointer gives packages of this module the methods that users
// do not see: (*engine.Limiter)(l).Outlook().
package engine
