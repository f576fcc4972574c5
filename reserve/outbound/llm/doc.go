// Package llm paces the calls that a program makes to language models.
package llm
