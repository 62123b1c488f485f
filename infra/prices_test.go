package main

// pricesAsOf is when the list prices below were looked up, for us-east-1 and
// arm64, in US dollars, without taxes and without what is free for an account.
const pricesAsOf = "November 2026"

// A price is of so many units.
type price struct{ dollars, per float64 }

// of is the price of n units.
func (p price) of(n float64) float64 { return n * p.dollars / p.per }

const million = 1_000_000

// The prices stand on the pages https://aws.amazon.com/NAME/pricing/.
var (
	// kms: a month; 2.00 after its first rotation, 3.00 after its second.
	priceKey, priceKeyCall = price{1.00, 1}, price{0.03, 10_000}
	// secrets-manager
	priceSecret = price{0.40, 1}
	// cloudwatch: alarms for each metric that they look at, of a minute or more, or of less; a log for each byte that is taken in
	priceAlarm, priceFastAlarm, priceMetric = price{0.10, 1}, price{0.30, 1}, price{0.30, 1}
	priceDashboard, priceLog                = price{3.00, 1}, price{0.50, 1e9}
	// xray
	priceTrace = price{5.00, million}
	// lambda
	priceCall, priceGBSecond = price{0.20, million}, price{0.0000133334, 1}
	// dynamodb/pricing/on-demand: the table with recovery to any second
	priceRead, priceWrite, priceTableGB = price{0.125, million}, price{0.625, million}, price{0.25 + 0.20, 1}
	// step-functions, api-gateway, s3
	priceTransition, priceRequest, priceS3GB = price{0.025, 1000}, price{3.50, million}, price{0.023, 1}
	// eventbridge: events of one's own; those of a schedule are not listed
	priceEvent = price{1.00, million}
	// waf
	priceWebACL, priceWebACLRule, priceWebACLAsked = price{5.00, 1}, price{1.00, 1}, price{0.60, million}
)
