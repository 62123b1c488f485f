module github.com/longshore/longshore

go 1.26

require (
	github.com/google/go-cmp v0.7.0
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.2
	go.etcd.io/bbolt v1.4.3
	go.yaml.in/yaml/v3 v3.0.4
)

require (
	golang.org/x/sys v0.29.0 // indirect
	golang.org/x/text v0.14.0 // indirect
)
