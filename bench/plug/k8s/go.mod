module github.com/nextfree/pace/bench/plug/k8s

go 1.25.0
