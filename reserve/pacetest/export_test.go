package pacetest

// MostIn is for tests.
var MostIn = mostIn
