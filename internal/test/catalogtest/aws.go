package catalogtest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// AWS is a catalog of offerings whose service roles may do one thing each.
func AWS(t *testing.T, actions map[string]string) *catalog.Catalog {
	t.Helper()
	files := map[string][]byte{}
	var all []catalog.Offering
	for name, action := range actions {
		permissions := []byte(fmt.Sprintf(`{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": %q,
			"Resource": "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:${Prefix}*"}]}`, action))
		files[plan.Digest(permissions)] = permissions
		snapshot, err := json.Marshal(plan.Settings{
			Format: plan.Format, Offering: name, Permissions: plan.Digest(permissions),
			Policy: json.RawMessage(`{"Version": "2012-10-17",
				"Statement": [{"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "${Arn}"}]}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, catalog.Offering{
			ID: "id-of-" + name, Name: name, Description: "d", Provider: "cloudformation", Bindable: true,
			Plans: []catalog.Plan{{ID: "plan-of-" + name, Name: "small", Description: "d",
				Unpublished: catalog.Unpublished{Snapshot: snapshot}}},
		})
	}
	compiled, err := catalog.Encode(all, files)
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Open(compiled)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
