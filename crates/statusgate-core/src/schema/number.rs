//! Numbers as the API server compares them: 64-bit integers and floats.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

/// A JSON number as Go decodes it: `1` is an integer, `1.0` and 2^63 are floats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Integer(i64),
    Float(f64),
}

/// 2^63.
const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;

/// Half a unit above the largest 32-bit float, where Go's `ParseFloat` reports an overflow.
const FLOAT32_LIMIT: f64 = 3.402_823_567_797_336_6e38;

impl Number {
    pub(super) fn of(value: &Value) -> Option<Self> {
        let number = value.as_number()?;
        number.as_i64().map(Self::Integer).or_else(|| number.as_f64().map(Self::Float))
    }

    #[expect(clippy::cast_precision_loss, reason = "Go's float64(int64) rounds too")]
    pub(super) const fn float(self) -> f64 {
        match self {
            Self::Integer(number) => number as f64,
            Self::Float(number) => number,
        }
    }

    /// `IsFloat64AJSONInteger` of go-openapi/swag: a relative error below 1e-9 is ignored.
    pub(super) fn is_integral(self) -> bool {
        const MAX_SAFE: f64 = 9_007_199_254_740_991.0;
        let number = match self {
            Self::Integer(_) => return true,
            Self::Float(number) => number,
        };
        if !number.is_finite() || number.abs() > MAX_SAFE {
            return false;
        }
        let rounded = number.round();
        let (error, limit) = ((number - rounded).abs(), 1e-9 * rounded.abs());
        number == rounded || error < limit
    }

    /// `IsValueValidAgainstRange` of kube-openapi.
    pub(super) fn is_in_range(self, kind: &str, format: &str) -> bool {
        match (kind, format) {
            ("integer", "int32") => self.whole().is_some_and(|whole| i32::try_from(whole).is_ok()),
            ("integer", _) => self.whole().is_some(),
            ("number", "float") => self.float().abs() < FLOAT32_LIMIT,
            _ => true,
        }
    }

    /// The number if it is a 64-bit integer.
    fn whole(self) -> Option<i64> {
        match self {
            Self::Integer(whole) => Some(whole),
            Self::Float(number) if number == number.trunc() => truncated(number),
            Self::Float(_) => None,
        }
    }

    /// A limit in the type of this number: that of an integer is truncated, unless it `is_general`. `None`
    /// where the result depends on the server's processor.
    pub(super) fn limit(self, limit: f64, is_general: bool) -> Option<Self> {
        match self {
            Self::Integer(_) if !is_general => truncated(limit).map(Self::Integer),
            _ => Some(Self::Float(limit)),
        }
    }

    pub(super) fn compare(self, limit: Self) -> Option<Ordering> {
        match (self, limit) {
            (Self::Integer(number), Self::Integer(limit)) => Some(number.cmp(&limit)),
            _ => self.float().partial_cmp(&limit.float()),
        }
    }

    /// `MultipleOfNativeType`, for a positive factor.
    pub(super) fn is_multiple_of(self, factor: Self) -> bool {
        if let (Self::Integer(number), Self::Integer(factor)) = (self, factor) {
            return number % factor == 0;
        }
        let (number, factor) = (self.float(), factor.float());
        let times = if factor < 1.0 { 1.0 / factor * number } else { number / factor };
        Self::Float(times).is_integral()
    }
}

/// `%v` in Go.
impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = match self {
            Self::Integer(number) => return write!(formatter, "{number}"),
            Self::Float(number) => *number,
        };
        let size = number.abs();
        if size == 0.0 || (1e-4..1e6).contains(&size) {
            return write!(formatter, "{number}");
        }
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) =
            exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
        write!(formatter, "{digits}e{sign}{exponent:0>2}")
    }
}

/// `int64(number)`; `None` where Go's result depends on the processor.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
pub(super) fn truncated(number: f64) -> Option<i64> {
    (-TOO_LARGE..TOO_LARGE).contains(&number).then_some(number as i64)
}

/// `reflect.DeepEqual` of two decoded values: 1 and 1.0 differ.
pub(super) fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(_), Value::Number(_)) => Number::of(one) == Number::of(other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(name, one)| other.get(name).is_some_and(|other| is_equal(one, other)))
        }
        _ => one == other,
    }
}

/// Whether a value is a member of an enum: `basicCommonValidator` converts it to the member's Go type, so
/// 1.9 is 1, and 65 is "A".
pub(super) fn is_member(value: &Value, member: &Value) -> bool {
    match (Number::of(value), Number::of(member), member) {
        (Some(Number::Integer(value)), Some(Number::Integer(member)), _) => value == member,
        (Some(Number::Float(value)), Some(Number::Integer(member)), _) => {
            truncated(value) == Some(member)
        }
        (Some(value), Some(Number::Float(member)), _) => value.float() == member,
        (Some(Number::Integer(code)), None, Value::String(member)) => {
            let letter = u32::try_from(code).ok().and_then(char::from_u32);
            member.chars().eq([letter.unwrap_or(char::REPLACEMENT_CHARACTER)])
        }
        _ => !value.is_null() && is_equal(value, member),
    }
}

/// A value as it returns from etcd: Go writes 1.0 as 1.
pub(super) fn stored(value: &Value) -> Value {
    match value {
        Value::Number(_) => {
            let whole = Number::of(value).filter(|number| number.float().abs() < 1e21);
            whole.and_then(Number::whole).map_or_else(|| value.clone(), Value::from)
        }
        Value::Array(items) => items.iter().map(stored).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), stored(value))).collect()
        }
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_print_as_in_go() {
        for (number, text) in [
            (json!(-5), "-5"),
            (json!(1.0), "1"),
            (json!(2.5), "2.5"),
            (json!(1e-7), "1e-07"),
            (json!(0.0001), "0.0001"),
            (json!(999_999.5), "999999.5"),
            (json!(2_147_483_647.0), "2.147483647e+09"),
            (json!(9_223_372_036_854_775_808_u64), "9.223372036854776e+18"),
        ] {
            assert_eq!(Number::of(&number).unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_nearly_integral_float_is_integral() {
        for (number, expected) in [
            (1.0, true),
            (3.000_000_000_1, true),
            (3.000_01, false),
            (0.000_000_000_1, false),
            (1e17, false),
        ] {
            assert_eq!(Number::Float(number).is_integral(), expected, "{number}");
        }
    }

    #[test]
    fn an_enum_converts_the_value() {
        for (value, member, expected) in [
            (json!(1.9), json!(1), true),
            (json!(1), json!(1.0), true),
            (json!(65), json!("A"), true),
            (json!("A"), json!(65), false),
            (json!(null), json!(null), false),
            (json!([1]), json!([1.0]), false),
            (json!({"a": 1}), json!({"a": 1}), true),
        ] {
            assert_eq!(is_member(&value, &member), expected, "{value} {member}");
        }
    }

    #[test]
    fn the_limit_of_an_integer_is_truncated() {
        let one = Number::Integer(1);
        assert_eq!(one.limit(1.5, false), Some(one));
        assert_eq!(one.limit(1e30, false), None);
        let general = one.limit(1e30, true).unwrap();
        assert_eq!(one.compare(general), Some(Ordering::Less));
        assert!(one.is_multiple_of(one.limit(0.5, true).unwrap()));
        assert!(!Number::Float(0.7).is_multiple_of(Number::Float(0.5)));
        assert!(Number::Float(0.3).is_multiple_of(Number::Float(0.1)), "nearly");
    }

    #[test]
    fn etcd_returns_whole_floats_as_integers() {
        let value = json!({"a": [1.0, 1.5, 1e20, -0.0]});
        assert!(is_equal(&stored(&value), &json!({"a": [1, 1.5, 1e20, 0]})));
    }
}
