// Package bootstrap prepares an AWS account for a broker, with the operator's credentials. It
// makes, updates and repairs the stack that the offerings need there; it records in a mark which
// needs the account was prepared for; and it tells which rights the broker's own credentials need.
// It reads the targets, which are the accounts and regions that an operator names, and reaches them.
// Package account says what the stack and the rights contain, and the provider makes the instances.
package bootstrap

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/provider/cloudformation/account"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// A Session is the location that some credentials lead to, and the configuration to reach it.
type Session struct {
	plan.Location
	Config aws.Config
	Caller string // the ARN of the credentials' owner
}

// patience is how long AWS may take to say whose credentials these are.
const patience = 15 * time.Second

// Load reads the SDK's usual settings, and checks that their credentials are valid.
func Load(ctx context.Context) (Session, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return Session{}, &advice.Error{Name: "AWS", What: "has no settings that can be read",
			Remedy: "put right what AWS_PROFILE or the files of the AWS CLI say", Cause: err}
	}
	return At(ctx, cfg)
}

// At is like Whose, with errors that say what an operator can do.
func At(ctx context.Context, cfg aws.Config) (Session, error) {
	p := Session{Config: cfg}
	if cfg.Region == "" {
		return p, advice.For("AWS_REGION", "is not set, and no profile names a region",
			"set it to the region to work in, such as eu-central-1")
	}
	_, err := cfg.Credentials.Retrieve(ctx)
	if err == nil {
		p, err = Whose(ctx, cfg)
		if _, unreached := errors.AsType[*net.OpError](err); unreached {
			return p, &advice.Error{Name: "AWS", What: "cannot be reached",
				Remedy: "check that the network reaches AWS; for an emulator, that it runs at AWS_ENDPOINT_URL", Cause: err}
		}
	}
	if err != nil {
		return p, &advice.Error{Name: "AWS", What: "does not say whose account it is",
			Remedy: "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, so that `aws sts get-caller-identity` " +
				"says the account; for an emulator, AWS_ENDPOINT_URL too", Cause: err}
	}
	return p, nil
}

// Whose asks AWS whose credentials these are, and returns its error as it is.
func Whose(ctx context.Context, cfg aws.Config) (Session, error) {
	p := Session{Config: cfg}
	out, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return p, err
	}
	p.Caller = aws.ToString(out.Arn)
	p.Partition, p.Account, p.Region = "aws", aws.ToString(out.Account), cfg.Region
	if id, err := arn.Parse(p.Caller); err == nil {
		p.Partition = id.Partition
	}
	return p, nil
}

// In returns the session in a target, reached from this session.
func (p Session) In(ctx context.Context, scope plan.Scope, t plan.Target) (Session, error) {
	return At(ctx, Reach(p.Config, scope, t, nil))
}

// Reach returns the configuration for work in a target, made of the broker's own. policy bounds the
// sessions of the target's role, if it is not nil.
func Reach(own aws.Config, scope plan.Scope, t plan.Target, policy *string) aws.Config {
	cfg := own.Copy()
	cfg.Region = cmp.Or(t.Region, own.Region)
	if t.Role != "" {
		cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(own), t.Role,
			func(o *stscreds.AssumeRoleOptions) {
				o.RoleSessionName, o.ExternalID, o.Policy = string(scope), &t.ExternalID, policy
			}))
	}
	return cfg
}

// buckets returns a client of S3. For an emulator, it puts the name of a bucket into the path
// instead of the host name.
//
// Hazard: once the bucket of templates is deleted, another account may take its name, and
// CloudFormation would make what that account's template says, with an administrator's rights. So
// each call names the owner.
func (p Session) buckets() *s3.Client {
	return s3.NewFromConfig(p.Config, func(o *s3.Options) { o.UsePathStyle = o.BaseEndpoint != nil })
}

// preparedKey is the key of the mark, in the bucket of templates. Of all resources that prepare an
// account, the broker may read only that bucket.
const preparedKey = "account/prepared.json"

// A Mark says which needs an account was prepared for: it holds the digests of each offering's
// needs, by the offering's name.
type Mark struct {
	Offerings map[string]string `json:"offerings"`
}

// markOf returns what is offered, and the mark of an account that is prepared for that.
func markOf(scope plan.Scope, offered *catalog.Catalog) (all []account.Offering, m Mark, err error) {
	m.Offerings = map[string]string{}
	if all, err = account.OfferingsOf(offered); err != nil {
		return nil, m, err
	}
	for _, o := range all {
		needs, err := account.Template(scope, []account.Offering{o}, account.Options{})
		if err != nil {
			return nil, m, err
		}
		m.Offerings[o.Name] = plan.Digest(needs)
	}
	return all, m, nil
}

// mark reads the mark that `longshore aws bootstrap` left for a scope, and its version; nil if the
// command was not run for this location.
func (p Session) mark(ctx context.Context, scope plan.Scope) (m Mark, version *string, err error) {
	bucket, key := scope.Bucket(p.Account, p.Region), preparedKey
	out, err := p.buckets().GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, ExpectedBucketOwner: &p.Account, Key: &key})
	if awserr.Is(err, awserr.Absent) {
		return m, nil, nil
	}
	if err == nil {
		err = json.NewDecoder(io.LimitReader(out.Body, 1<<20)).Decode(&m)
		err = errors.Join(err, out.Body.Close())
	}
	if err != nil {
		return m, nil, fmt.Errorf("reading what the account was prepared for: %w", err)
	}
	return m, out.ETag, nil
}

// Lacks returns the names of the offerings whose present needs the account was not prepared for.
// prepared is false if `longshore aws bootstrap` was not run for this location.
func (p Session) Lacks(ctx context.Context, scope plan.Scope, offered *catalog.Catalog) (names []string, prepared bool,
	err error) {
	has, version, err := p.mark(ctx, scope)
	if err != nil {
		return nil, false, err
	}
	_, want, err := markOf(scope, offered)
	for name, needs := range sorted.Map(want.Offerings) {
		if has.Offerings[name] != needs {
			names = append(names, name)
		}
	}
	return names, version != nil, err
}

// Options are the options of `longshore aws bootstrap`.
type Options struct {
	Scope   plan.Scope
	Offered *catalog.Catalog
	// Target is the name under which the account becomes a target; empty for the broker's own
	// account. The role in a target trusts Trust: the id of the broker's account, or ARNs of its
	// users and roles.
	Target string
	Trust  []string
	// Emulated leaves out everything that emulators lack.
	Emulated bool
	// Every is the time between two looks at the stack; zero for two seconds.
	Every time.Duration
	Say   func(format string, args ...any)
}

// A Result is the result of Run.
type Result struct {
	Account string `json:"account"`
	Region  string `json:"region"`
	Changes
	Offerings []string `json:"offerings"`
	// Targets is the part of LONGSHORE_AWS_TARGETS that lets the broker use the account, if it is
	// not the broker's own.
	Targets *plan.Targets `json:"targets,omitempty"`
}

// Run prepares one region of the account that the SDK's settings lead to. It may be repeated at any
// time.
func Run(ctx context.Context, o Options) (out Result, err error) {
	at, err := Load(ctx)
	if err != nil {
		return out, err
	}
	return at.prepare(ctx, o)
}

func (p Session) prepare(ctx context.Context, o Options) (out Result, err error) {
	out.Account, out.Region = p.Account, p.Region
	offerings, mark, err := markOf(o.Scope, o.Offered)
	if err != nil {
		return out, err
	}
	out.Offerings = slices.Sorted(maps.Keys(mark.Offerings))
	made := account.Options{Emulated: o.Emulated}
	if o.Target != "" {
		if made.Trust, out.Targets, err = p.access(o); err != nil {
			return out, err
		}
	}
	template, err := account.Template(o.Scope, offerings, made)
	if err != nil {
		return out, err
	}
	o.Say("account %s, region %s, as %s", p.Account, p.Region, p.Caller)
	if out.Changes, err = p.preparation(string(o.Scope)+"-account", o).run(ctx, template); err != nil {
		return out, err
	}
	return out, p.keepMark(ctx, o.Scope, mark)
}

// keepMark records which needs the account is prepared for. It is called last: a mark means that
// everything else is there.
func (p Session) keepMark(ctx context.Context, scope plan.Scope, m Mark) (err error) {
	for range keepTries {
		if err = p.keepMarkOnce(ctx, scope, m); !awserr.Is(err, awserr.Busy) {
			break
		}
	}
	return err
}

// keepTries bounds the tries to write the mark: another run may write its own between a read and a write.
const keepTries = 5

func (p Session) keepMarkOnce(ctx context.Context, scope plan.Scope, m Mark) error {
	has, version, err := p.mark(ctx, scope)
	if err != nil {
		return err
	}
	all := map[string]string{}
	maps.Copy(all, has.Offerings) // resources of former offerings are still there
	maps.Copy(all, m.Offerings)
	put := &s3.PutObjectInput{Bucket: new(scope.Bucket(p.Account, p.Region)), ExpectedBucketOwner: &p.Account,
		Key: new(preparedKey), IfMatch: version}
	if version == nil {
		put.IfNoneMatch = new("*")
	} else if maps.Equal(all, has.Offerings) {
		return nil
	}
	raw, _ := json.Marshal(Mark{all}) // texts always encode
	put.Body = bytes.NewReader(raw)
	_, err = p.buckets().PutObject(ctx, put)
	if err != nil {
		return fmt.Errorf("writing into the bucket %s what the account is prepared for: %w", *put.Bucket, err)
	}
	return nil
}

// preparation returns the preparation of one stack in this location.
func (p Session) preparation(name string, o Options) preparation {
	o.Every = cmp.Or(o.Every, 2*time.Second)
	return preparation{
		Session: p, Options: o,
		stacks: cloudformation.NewFromConfig(p.Config), objects: p.buckets(), iam: iam.NewFromConfig(p.Config),
		name: name, bucket: o.Scope.Bucket(p.Account, p.Region),
	}
}

// access returns the trust of the role in a target's account, and the target with which the broker
// names that account. The external id is the same each time. It is not secret, but no other broker
// uses it.
func (p Session) access(o Options) (*account.Trust, *plan.Targets, error) {
	if !hosted.TargetName.MatchString(o.Target) || o.Target == plan.DefaultTarget {
		return nil, nil, advice.For("--target", fmt.Sprintf("%q is not the name of another account", o.Target),
			"give one of lower-case letters, digits and hyphens, other than "+plan.DefaultTarget)
	}
	if len(o.Trust) == 0 {
		return nil, nil, advice.For("--trust", "is not given",
			"give the id of the account that the broker runs in: the role here is for it")
	}
	trust := account.Trust{ExternalID: externalID(o.Scope, p.Account)}
	for _, who := range o.Trust {
		switch {
		case regexp.MustCompile(formAccount).MatchString(who):
			who = "arn:" + p.Partition + ":iam::" + who + ":root"
		case !strings.HasPrefix(who, "arn:"+p.Partition+":iam::"):
			return nil, nil, advice.For("--trust", fmt.Sprintf("%q is neither an account nor an ARN of IAM", who),
				"give the 12 digits of the broker's account, or the ARN of the user or role that the broker has")
		}
		trust.Principals = append(trust.Principals, who)
	}
	return &trust, &plan.Targets{Targets: map[string]plan.Target{
		o.Target: {Account: p.Account, Region: p.Region, Role: o.Scope.AccessARN(p.Location), ExternalID: trust.ExternalID},
	}}, nil
}

func externalID(scope plan.Scope, account string) string {
	return plan.Short(string(scope)+" in "+account, 26)
}

// Rights returns the IAM policies that the broker's own credentials need in the account that the
// SDK's settings lead to, with the roles that the broker assumes in other accounts. There are
// several policies if one would be longer than IAM allows.
func Rights(ctx context.Context, scope plan.Scope, targets plan.Targets, emulated bool) (policies [][]byte, err error) {
	p, err := Load(ctx)
	if err != nil {
		return nil, err
	}
	o := account.OptionsFor(targets)
	o.Emulated = emulated
	for _, d := range account.Parts(account.Fill(account.Rights(scope, o), p.Location)) {
		raw, _ := json.MarshalIndent(d, "", "  ") // texts always encode
		policies = append(policies, raw)
	}
	return policies, nil
}
