// Package cpu reads the processor time of this process.
package cpu
