package template

import (
	"fmt"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/sorted"
)

// A rule is the value of a property that a careful engineer sets for a type of resource. An empty
// value allows any but false.
type rule struct{ kind, path, value, mend string }

var careful = []rule{
	{"AWS::S3::Bucket", "BucketEncryption", "", "name the encryption"},
	{"AWS::S3::Bucket", "PublicAccessBlockConfiguration/BlockPublicAcls", "true", "write true"},
	{"AWS::S3::Bucket", "PublicAccessBlockConfiguration/BlockPublicPolicy", "true", "write true"},
	{"AWS::S3::Bucket", "PublicAccessBlockConfiguration/IgnorePublicAcls", "true", "write true"},
	{"AWS::S3::Bucket", "PublicAccessBlockConfiguration/RestrictPublicBuckets", "true", "write true"},
	{"AWS::SQS::Queue", "SqsManagedSseEnabled|KmsMasterKeyId", "", "write SqsManagedSseEnabled: true, or name a key"},
	{"AWS::SNS::Topic", "KmsMasterKeyId", "", "name a key, such as alias/aws/sns"},
	{"AWS::Kinesis::Stream", "StreamEncryption", "", "name a key, such as alias/aws/kinesis"},
	{"AWS::DynamoDB::Table", "PointInTimeRecoverySpecification", "", "say whether the table can be restored to a point in time"},
	{"AWS::RDS::DBInstance", "StorageEncrypted|DBClusterIdentifier", "", "write true"},
	{"AWS::RDS::DBCluster", "StorageEncrypted", "true", "write true"},
	{"AWS::RDS::DBInstance", "PubliclyAccessible", "false", "write false"},
	{"AWS::ElastiCache::ReplicationGroup", "AtRestEncryptionEnabled", "true", "write true"},
	{"AWS::ElastiCache::ReplicationGroup", "TransitEncryptionEnabled", "true", "write true"},
	{"AWS::EFS::FileSystem", "Encrypted", "true", "write true"},
	{"AWS::OpenSearchService::Domain", "EncryptionAtRestOptions/Enabled", "true", "write true"},
	{"AWS::OpenSearchService::Domain", "NodeToNodeEncryptionOptions/Enabled", "true", "write true"},
	{"AWS::OpenSearchService::Domain", "DomainEndpointOptions/EnforceHTTPS", "true", "write true"},
	{"AWS::Redshift::Cluster", "Encrypted", "true", "write true"},
	{"AWS::DocDB::DBCluster", "StorageEncrypted", "true", "write true"},
	{"AWS::Neptune::DBCluster", "StorageEncrypted", "true", "write true"},
}

// care warns of settings that a careful engineer would avoid: the operator decides about them. It
// ignores properties whose value depends on the order.
func (c *checker) care() {
	for name, r := range sorted.Map(c.resources) {
		if r.condition != "" && c.condition(r.condition) == false {
			continue
		}
		properties := c.resolve(r.properties)
		at := "/Resources" + slot(name) + "/Properties"
		for _, rule := range careful {
			if rule.kind == r.kind && !satisfied(properties, rule) {
				first, _, _ := strings.Cut(rule.path, "|")
				c.doubtful(at+"/"+first, name+" has no safe "+strings.ReplaceAll(rule.path, "|", " or "), rule.mend)
			}
		}
		c.tls(name, r)
		c.opened(at, name, r, properties)
	}
}

// satisfied reports whether one of a rule's properties has the required value, or a value that is
// still open.
func satisfied(properties any, r rule) bool {
	for path := range strings.SplitSeq(r.path, "|") {
		v := project(properties, strings.Split(path, "/"))
		text, plain := scalarText(v)
		switch {
		case v == nil || plain && r.value == "" && text == "false":
		case !plain || r.value == "" || text == r.value:
			return true
		}
	}
	return false
}

// policies maps types to the type that holds their policy, and to the property of it that names the
// resource.
var policies = map[string]struct{ kind, of string }{
	"AWS::S3::Bucket": {"AWS::S3::BucketPolicy", "Bucket"},
	"AWS::SQS::Queue": {"AWS::SQS::QueuePolicy", "Queues"},
	"AWS::SNS::Topic": {"AWS::SNS::TopicPolicy", "Topics"},
}

// tls warns of resources that can be used without encryption: these services also answer plain
// HTTP, unless a policy denies it.
func (c *checker) tls(name string, r resource) {
	policy, has := policies[r.kind]
	if !has {
		return
	}
	for _, other := range c.resources {
		if other.kind != policy.kind || !slices.Contains(allRefs(other.properties[policy.of]), name) {
			continue
		}
		for _, s := range statementsOf(other.properties["PolicyDocument"]) {
			if s["Effect"] == "Deny" && strings.Contains(fmt.Sprint(s["Condition"]), "aws:SecureTransport:false") {
				return
			}
		}
	}
	c.doubtful("/Resources"+slot(name), name+" can be used without TLS",
		"add a "+policy.kind+" that denies all where aws:SecureTransport is false")
}

// statementsOf returns the statements of a policy document in a template.
func statementsOf(document any) (all []mapping) {
	object, _ := document.(mapping)
	for _, item := range items(object["Statement"]) {
		if s, is := item.(mapping); is {
			all = append(all, s)
		}
	}
	return all
}

// opened warns of policies that let everybody in, and of rules that admit all networks.
func (c *checker) opened(at, name string, r resource, properties any) {
	walk(properties, at, func(at string, v any) {
		object, _ := v.(mapping)
		for _, s := range statementsOf(object) {
			if s["Effect"] == "Allow" && anybody(s["Principal"]) && s["Condition"] == nil {
				c.doubtful(at, name+" is open to everybody", "name the principals, or bound them by a Condition")
			}
		}
		internet := object["CidrIp"] == "0.0.0.0/0" || object["CidrIp"] == nil && object["CidrIpv6"] == "::/0"
		if internet && (strings.HasSuffix(r.kind, "Ingress") || strings.Contains(at, "Ingress")) {
			c.doubtful(at, name+" lets in the whole internet", "name the networks: a parameter may be from target: cidrs")
		}
	})
}

func anybody(principal any) bool {
	if object, is := principal.(mapping); is {
		principal = object["AWS"]
	}
	return slices.Contains(items(principal), any("*"))
}
