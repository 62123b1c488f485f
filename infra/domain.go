package main

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscertificatemanager"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsroute53"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// DomainProps are a domain of the operator's own; an empty Name is none.
type DomainProps struct {
	Name string
	// Certificate is the ARN of one for the name, in the stack's region.
	Certificate string
	// Zone is the id of the hosted zone in which the name is to be recorded;
	// empty where the operator records it.
	Zone string
	// BasePath is what the API is mapped to, with a slash before it; empty for
	// the domain's root.
	BasePath string
}

// Domain is a name by which clients reach the API. It stays the same when the
// API is another one, such as in a stack that goes on with a former one's state.
type Domain struct {
	// Target is what the name is to point at.
	Target *string
}

// NewDomain maps the name to the API, and records it if it is given a zone.
func NewDomain(scope constructs.Construct, id string, rest awsapigateway.RestApi, props *DomainProps) *Domain {
	scope = constructs.NewConstruct(scope, &id)
	name := awsapigateway.NewDomainName(scope, jsii.String("Name"), &awsapigateway.DomainNameProps{
		DomainName: &props.Name,
		Certificate: awscertificatemanager.Certificate_FromCertificateArn(scope, jsii.String("Certificate"),
			&props.Certificate),
		EndpointType:   awsapigateway.EndpointType_REGIONAL,
		SecurityPolicy: awsapigateway.SecurityPolicy_TLS_1_2,
	})
	mapping := &awsapigateway.BasePathMappingOptions{Stage: rest.DeploymentStage()}
	if props.BasePath != "" {
		mapping.BasePath = jsii.String(strings.TrimPrefix(props.BasePath, "/"))
	}
	name.AddBasePathMapping(rest, mapping)
	if props.Zone != "" {
		awsroute53.NewCfnRecordSet(scope, jsii.String("Record"), &awsroute53.CfnRecordSetProps{
			HostedZoneId: &props.Zone, Name: &props.Name, Type: jsii.String("A"),
			AliasTarget: &awsroute53.CfnRecordSet_AliasTargetProperty{
				DnsName: name.DomainNameAliasDomainName(), HostedZoneId: name.DomainNameAliasHostedZoneId(),
			},
		})
	}
	return &Domain{Target: name.DomainNameAliasDomainName()}
}
