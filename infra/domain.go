package main

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscertificatemanager"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsroute53"
	"github.com/aws/constructs-go/constructs/v10"
)

// mapDomain maps a domain of the operator's own to the API, and records it if there is a hosted
// zone. It returns the name to which the domain must point. The domain stays the same if the API
// changes, such as for a stack that goes on with the state of a former one.
func mapDomain(scope constructs.Construct, rest awsapigateway.RestApi, s Settings) (target *string) {
	scope = subscope(scope, "Domain")
	name := awsapigateway.NewDomainName(scope, new("Name"), &awsapigateway.DomainNameProps{
		DomainName: &s.Domain,
		Certificate: awscertificatemanager.Certificate_FromCertificateArn(scope, new("Certificate"),
			&s.Certificate),
		EndpointType:   awsapigateway.EndpointType_REGIONAL,
		SecurityPolicy: awsapigateway.SecurityPolicy_TLS_1_2,
	})
	mapping := &awsapigateway.BasePathMappingOptions{Stage: rest.DeploymentStage()}
	if s.BasePath != "" {
		mapping.BasePath = new(strings.TrimPrefix(s.BasePath, "/"))
	}
	name.AddBasePathMapping(rest, mapping)
	if s.HostedZone != "" {
		awsroute53.NewCfnRecordSet(scope, new("Record"), &awsroute53.CfnRecordSetProps{
			HostedZoneId: &s.HostedZone, Name: &s.Domain, Type: new("A"),
			AliasTarget: &awsroute53.CfnRecordSet_AliasTargetProperty{
				DnsName: name.DomainNameAliasDomainName(), HostedZoneId: name.DomainNameAliasHostedZoneId(),
			},
		})
	}
	return name.DomainNameAliasDomainName()
}
