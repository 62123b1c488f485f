package app

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"path/filepath"
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

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/base/remedy"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/provider/cloudformation/account"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// ScopeOfStack is the beginning of the names of everything that a deployed broker
// makes.
func ScopeOfStack(stack string) plan.Scope { return plan.ScopeOf(stack) }

// ScopeOfFolder is the same for the broker over a data folder. It reads the identity of
// the folder, and sets the folder up if there is none; a broker may run on it.
func ScopeOfFolder(dir string) (plan.Scope, error) {
	mark, found, err := readMarker(filepath.Join(dir, fileMarker))
	if err != nil || !found {
		f, err := openFolder(dir, false)
		if err != nil {
			return "", err
		}
		defer f.close()
		mark = f.mark
	}
	return plan.ScopeOf(mark.Broker), nil
}

// An awsPlace is where some credentials lead, and how.
type awsPlace struct {
	plan.Place
	config aws.Config
	caller string // the ARN of whose credentials they are
}

// awsPatience is how long AWS may take to answer whose credentials these are.
const awsPatience = 15 * time.Second

// loadAWS reads the SDK's usual settings, and proves that their credentials are valid.
func loadAWS(ctx context.Context) (awsPlace, error) {
	ctx, cancel := context.WithTimeout(ctx, awsPatience)
	defer cancel()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return awsPlace{}, &remedy.Error{Name: "AWS", What: "has no settings that can be read",
			Remedy: "put right what AWS_PROFILE or the files of the AWS CLI say", Cause: err}
	}
	return provenAWS(ctx, cfg)
}

// provenAWS asks whose credentials these are.
func provenAWS(ctx context.Context, cfg aws.Config) (awsPlace, error) {
	p := awsPlace{config: cfg}
	if cfg.Region == "" {
		return p, remedy.For("AWS_REGION", "is not set, and no profile names a region", "set it to the region to work in, such as eu-central-1")
	}
	_, err := cfg.Credentials.Retrieve(ctx)
	var out *sts.GetCallerIdentityOutput
	if err == nil {
		out, err = sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		if _, unreached := errors.AsType[*net.OpError](err); unreached {
			return p, &remedy.Error{Name: "AWS", What: "cannot be reached",
				Remedy: "see that the network leads there; for an emulator, that it runs where AWS_ENDPOINT_URL says", Cause: err}
		}
	}
	if err != nil {
		return p, &remedy.Error{Name: "AWS", What: "does not say whose account it is",
			Remedy: "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, so that `aws sts get-caller-identity` says the account; " +
				"for an emulator, AWS_ENDPOINT_URL too", Cause: err}
	}
	p.caller = aws.ToString(out.Arn)
	p.Partition, p.Account, p.Region = "aws", aws.ToString(out.Account), cfg.Region
	if id, err := arn.Parse(p.caller); err == nil {
		p.Partition = id.Partition
	}
	return p, nil
}

// in is the place that a target is, reached from this one.
func (p awsPlace) in(ctx context.Context, scope plan.Scope, t AWSTarget) (awsPlace, error) {
	cfg := p.config.Copy()
	if t.Region != "" {
		cfg.Region = t.Region
	}
	if t.Role != "" {
		cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(p.config), t.Role,
			func(o *stscreds.AssumeRoleOptions) { o.RoleSessionName, o.ExternalID = string(scope), &t.ExternalID }))
	}
	return provenAWS(ctx, cfg)
}

// buckets is a client of S3. With an emulator, names of buckets stand in the path and
// not in the host's name.
func (p awsPlace) buckets() *s3.Client {
	return s3.NewFromConfig(p.config, func(o *s3.Options) { o.UsePathStyle = o.BaseEndpoint != nil })
}

// preparedKey is the object, in the bucket of templates, that says what the account was
// prepared for. Of all that prepares an account, the broker may read that bucket alone.
const preparedKey = "account/prepared.json"

// A preparedMark is the content of that object: digests of what each offering needs, by
// its name.
type preparedMark struct {
	Offerings map[string]string `json:"offerings"`
}

func markOf(scope plan.Scope, offerings []account.Offering) (preparedMark, error) {
	m := preparedMark{map[string]string{}}
	for _, o := range offerings {
		needs, err := account.Template(scope, []account.Offering{o}, account.Options{})
		if err != nil {
			return m, err
		}
		m.Offerings[o.Name] = plan.Digest(needs)
	}
	return m, nil
}

// prepared reads what `longshore aws bootstrap` has written for a scope; found is
// false if it was not run there.
func (p awsPlace) prepared(ctx context.Context, scope plan.Scope) (m preparedMark, found bool, err error) {
	bucket, key := scope.Bucket(p.Account, p.Region), preparedKey
	out, err := p.buckets().GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	if awserr.Is(err, awserr.Absent) {
		return m, false, nil
	}
	if err != nil {
		return m, false, fmt.Errorf("reading what the account was prepared for: %w", err)
	}
	defer func() { _ = out.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(out.Body, 1<<20))
	if err != nil {
		return m, false, fmt.Errorf("reading what the account was prepared for: %w", err)
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, false, fmt.Errorf("reading what the account was prepared for: %w", err)
	}
	return m, true, nil
}

// lacks are the offerings whose present needs the account was not prepared for.
func (m preparedMark) lacks(scope plan.Scope, offered *catalog.Catalog) (names []string, err error) {
	offerings, err := account.OfferingsOf(offered)
	if err != nil {
		return nil, err
	}
	want, err := markOf(scope, offerings)
	for _, name := range slices.Sorted(maps.Keys(want.Offerings)) {
		if m.Offerings[name] != want.Offerings[name] {
			names = append(names, name)
		}
	}
	return names, err
}

// A Preparing is what `longshore aws bootstrap` is told.
type Preparing struct {
	Scope   plan.Scope
	Offered *catalog.Catalog
	// Target is the name of the target that the account is to be; empty for the
	// broker's own. Trust is then whom the role there trusts: the id of the broker's
	// account, or ARNs of its users and roles.
	Target string
	Trust  []string
	// Emulated leaves out what emulators do not have.
	Emulated bool
	// Every is the time between two looks at what is made; zero for two seconds.
	Every time.Duration
	Say   func(format string, args ...any)
}

// A PreparedAccount is the result of PrepareAWS.
type PreparedAccount struct {
	Account string `json:"account"`
	Region  string `json:"region"`
	Prepared
	Offerings []string `json:"offerings"`
	// Targets is what LONGSHORE_AWS_TARGETS has to say to use another account.
	Targets *AWSTargets `json:"targets,omitempty"`
}

// PrepareAWS makes what the offerings need in one region of the account that the SDK's
// settings lead to. It may be repeated at any time.
func PrepareAWS(ctx context.Context, o Preparing) (out PreparedAccount, err error) {
	at, err := loadAWS(ctx)
	if err != nil {
		return out, err
	}
	return at.prepare(ctx, o)
}

func (p awsPlace) prepare(ctx context.Context, o Preparing) (out PreparedAccount, err error) {
	out.Account, out.Region = p.Account, p.Region
	offerings, err := account.OfferingsOf(o.Offered)
	if err != nil {
		return out, err
	}
	mark, err := markOf(o.Scope, offerings)
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
	o.Say("account %s, region %s, as %s", p.Account, p.Region, p.caller)
	bucket := o.Scope.Bucket(p.Account, p.Region)
	stack := p.preparation(string(o.Scope)+"-account", bucket, o)
	if o.Emulated {
		stack.without = "TemplatesPolicy" // it asks for TLS, which emulators lack
		stack.unadopted = []string{"AWS::IAM::ManagedPolicy"}
	}
	if out.Prepared, err = stack.run(ctx, template); err != nil {
		return out, err
	}
	return out, p.keepMark(ctx, o.Scope, mark)
}

// keepMark records in the bucket what the account is prepared for. It is called last:
// whoever finds the mark finds everything else.
func (p awsPlace) keepMark(ctx context.Context, scope plan.Scope, m preparedMark) error {
	has, found, err := p.prepared(ctx, scope)
	if err != nil {
		return err
	}
	all := maps.Clone(has.Offerings) // what is offered no more is still there
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, m.Offerings)
	if found && maps.Equal(all, has.Offerings) {
		return nil
	}
	raw, err := json.Marshal(preparedMark{all})
	if err != nil {
		return err
	}
	bucket, key := scope.Bucket(p.Account, p.Region), preparedKey
	if _, err := p.buckets().PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(raw)}); err != nil {
		return fmt.Errorf("writing into the bucket %s what the account is prepared for: %w", bucket, err)
	}
	return nil
}

// preparation is the preparation of one stack in this place.
func (p awsPlace) preparation(name, bucket string, o Preparing) preparation {
	return preparation{
		stacks: cloudformation.NewFromConfig(p.config), objects: p.buckets(), iam: iam.NewFromConfig(p.config), place: p.Place,
		fixed: o.Scope.FixedPath(), name: name, bucket: bucket,
		every: cmp.Or(o.Every, 2*time.Second), say: o.Say,
	}
}

// access is whom the role of another account trusts, and how the broker names that
// account. The external id is the same each time. It is not secret, but no other broker
// uses it.
func (p awsPlace) access(o Preparing) (*account.Trust, *AWSTargets, error) {
	if !targetName.MatchString(o.Target) || o.Target == hosted.DefaultTarget {
		return nil, nil, remedy.For("--target", fmt.Sprintf("%q is not the name of another account", o.Target),
			"give one of lower-case letters, digits and hyphens, other than "+hosted.DefaultTarget)
	}
	if len(o.Trust) == 0 {
		return nil, nil, remedy.For("--trust", "is not given", "give the id of the account that the broker runs in: the role here is for it")
	}
	trust := account.Trust{ExternalID: externalID(o.Scope, p.Account)}
	for _, who := range o.Trust {
		switch {
		case regexp.MustCompile(awsAccount).MatchString(who):
			who = "arn:" + p.Partition + ":iam::" + who + ":root"
		case !strings.HasPrefix(who, "arn:"+p.Partition+":iam::"):
			return nil, nil, remedy.For("--trust", fmt.Sprintf("%q is neither an account nor an ARN of IAM", who),
				"give the 12 digits of the broker's account, or the ARN of the user or role that the broker has")
		}
		trust.Principals = append(trust.Principals, who)
	}
	role := "arn:" + p.Partition + ":iam::" + p.Account + ":role" + o.Scope.FixedPath() + o.Scope.Access(p.Region)
	return &trust, &AWSTargets{Targets: map[string]AWSTarget{
		o.Target: {Account: p.Account, Region: p.Region, Role: role, ExternalID: trust.ExternalID},
	}}, nil
}

func externalID(scope plan.Scope, account string) string {
	sum := sha256.Sum256([]byte(string(scope) + " in " + account))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:26])
}

// Options are what the policies of the broker must allow for these targets.
func (t AWSTargets) Options() (o account.Options) {
	for _, one := range t.Targets {
		if one.Role != "" {
			o.Access = append(o.Access, one.Role)
		} else if one.Region != "" {
			o.Regions = append(o.Regions, one.Region)
		}
	}
	slices.Sort(o.Access)
	slices.Sort(o.Regions)
	o.Access, o.Regions = slices.Compact(o.Access), slices.Compact(o.Regions)
	return o
}

// AWSRights are the IAM policies that the embedded broker's own credentials need in the
// account that the SDK's settings lead to: one, or several where IAM takes no policy of
// that size. Roles are those that it takes in other accounts.
func AWSRights(ctx context.Context, scope plan.Scope, targets AWSTargets, emulated bool) (policies [][]byte, err error) {
	p, err := loadAWS(ctx)
	if err != nil {
		return nil, err
	}
	o := targets.Options()
	o.Emulated = emulated
	for _, d := range account.Parts(account.Fill(account.Rights(scope, o), p.Place)) {
		raw, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			return nil, err
		}
		policies = append(policies, raw)
	}
	return policies, nil
}
