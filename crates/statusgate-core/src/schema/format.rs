//! The string formats that the API server checks, as `strfmt` of kube-openapi does.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use jiff::civil::Date;
use regex::Regex;

use super::NAME_FORMATS;
use super::pattern::is_letter;

/// Whether a text has a format; `None` if that is not proven.
pub(super) type Format = fn(&str) -> Option<bool>;

/// The check of a format by its name; `None` if the API server ignores it for these types.
pub(super) fn find(name: &str, types: &[&str], minor: u32) -> Option<Format> {
    match types {
        ["integer"] => return matches!(name, "int32" | "int64").then_some(|_| Some(true)),
        ["number"] => return matches!(name, "float" | "double").then_some(|_| Some(true)),
        [] | ["string"] | [_, _] => {}
        _ => return None,
    }
    Some(match name.replace('-', "").as_str() {
        "bsonobjectid" => |text| Some(is_hex(text, 24)),
        "byte" => |text| Some(is_base64(text)),
        "cidr" => is_cidr,
        "creditcard" => |text| Some(is_credit_card(text)),
        "date" => |text| Some(is_date(text)),
        "datetime" => |text| Some(is_date_time(text)),
        "duration" => is_duration,
        "email" => is_email,
        "hexcolor" => |text| {
            let digits = text.strip_prefix('#').unwrap_or(text);
            Some(is_hex(digits, 3) || is_hex(digits, 6))
        },
        "hostname" => is_hostname,
        "ipv4" => |text| match is_ipv4(text) {
            false if text.contains('.') => is_sloppy_ipv6(text),
            is_ipv4 => Some(is_ipv4),
        },
        "ipv6" => |text| Some(text.parse::<Ipv6Addr>().is_ok()),
        "isbn" => |text| Some(is_isbn10(text) || is_isbn13(text)),
        "isbn10" => |text| Some(is_isbn10(text)),
        "isbn13" => |text| Some(is_isbn13(text)),
        "k8slongname" if minor >= NAME_FORMATS => {
            |text| Some(text.len() <= 253 && text.split('.').all(is_label))
        }
        "k8sshortname" if minor >= NAME_FORMATS => |text| Some(text.len() <= 63 && is_label(text)),
        "mac" => |text| Some(is_mac(text)),
        "password" => |_| Some(true),
        "rgbcolor" => |text| Some(matches(&RGB_COLOR, text)),
        "ssn" => |text| Some(text.len() == 11 && matches(&SSN, text)),
        "uri" => is_uri,
        "uuid" => |text| Some(is_uuid(text, &[])),
        "uuid3" => |text| Some(is_uuid(text, &[(12, "3")])),
        "uuid4" => |text| Some(is_uuid(text, &[(12, "4"), (16, "89abAB")])),
        "uuid5" => |text| Some(is_uuid(text, &[(12, "5"), (16, "89abAB")])),
        _ => return None,
    })
}

/// A valid expression, because the tests use it.
type Expression = LazyLock<Option<Regex>>;

fn matches(expression: &Expression, text: &str) -> bool {
    expression.as_ref().is_some_and(|expression| expression.is_match(text))
}

static SSN: Expression = LazyLock::new(|| Regex::new("^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$").ok());

static CREDIT_CARD: Expression = LazyLock::new(|| {
    Regex::new(
        "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}\
         |3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$",
    )
    .ok()
});

/// Any character may be before the fraction.
static TIME: Expression = LazyLock::new(|| {
    Regex::new("^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$").ok()
});

/// `time.ParseDuration`.
static GO_DURATION: Expression = LazyLock::new(|| {
    Regex::new("^[-+]?(0|(([0-9]+\\.?[0-9]*|\\.[0-9]+)(ns|us|\u{b5}s|\u{3bc}s|ms|s|m|h))+)$").ok()
});

static DURATION_PART: Expression =
    LazyLock::new(|| Regex::new("([0-9]+)[\t\n\u{c}\r ]*([A-Za-z\u{b5}]+)").ok());

/// The addresses that `mail.ParseAddress` surely accepts.
static PLAIN_EMAIL: Expression = LazyLock::new(|| {
    Regex::new(
        "^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$",
    )
    .ok()
});

/// With `a` for each letter and `$` for each symbol beyond ASCII.
static HOSTNAME: Expression = LazyLock::new(|| {
    Regex::new(
        "^([a-zA-Z0-9$+<=>^`|~]((-?[a-zA-Z0-9$+<=>^`|~]{0,62})?)\
         |([a-zA-Z0-9$+<=>^`|~](([a-zA-Z0-9$+<=>^`|~-]{0,61}[a-zA-Z0-9$+<=>^`|~])?)(\\.)){1,}([a-zA-Z]){2,63})$",
    )
    .ok()
});

static RGB_COLOR: Expression = LazyLock::new(|| {
    let number = "[\t\n\u{c}\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\u{c}\r ]*";
    Regex::new(&format!(r"^rgb\({number},{number},{number}\)$")).ok()
});

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A text without padding at the end of a group, and not empty.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && padding <= 2
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte))
}

/// `places` have one of some digits.
fn is_uuid(text: &str, places: &[(usize, &str)]) -> bool {
    let mut groups = text;
    let mut digits = String::new();
    for length in [8, 4, 4, 4, 12] {
        groups = groups.strip_prefix('-').filter(|_| length < 8 || length == 12).unwrap_or(groups);
        let Some((group, after)) = groups.split_at_checked(length) else { return false };
        digits.push_str(group);
        groups = after;
    }
    groups.is_empty()
        && is_hex(&digits, 32)
        && places.iter().all(|(place, allowed)| {
            digits.chars().nth(*place).is_some_and(|digit| allowed.contains(digit))
        })
}

/// A part of a Kubernetes name.
fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().all(|byte| is_inner(byte) || byte == b'-')
        && text.bytes().next().is_some_and(is_inner)
        && text.bytes().last().is_some_and(is_inner)
}

/// `time.Parse("2006-01-02")`.
fn is_date(text: &str) -> bool {
    let shape = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    shape && text.parse::<Date>().is_ok()
}

/// Each zone is valid.
fn is_date_time(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let fields = TIME.as_ref().and_then(|expression| expression.captures(time));
    is_date(date)
        && fields
            .is_some_and(|fields| &fields[1] <= "23" && &fields[2] <= "59" && &fields[3] <= "59")
}

/// Go's durations, or any text that contains a number and a unit.
fn is_duration(text: &str) -> Option<bool> {
    const UNITS: [&str; 11] = ["ns", "us", "\u{b5}s", "ms", "s", "m", "h", "hr", "d", "w", "wk"];
    const PREFIXES: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    if matches(&GO_DURATION, text) {
        // An overflow in Go makes the second form decide.
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        return (digits < 15).then_some(true);
    }
    let mut has_unit = false;
    for part in DURATION_PART.as_ref()?.captures_iter(text) {
        if part[1].parse::<i64>().is_err() {
            return Some(false);
        }
        let unit = part[2].to_ascii_lowercase();
        has_unit |=
            UNITS.contains(&&*unit) || PREFIXES.iter().any(|prefix| unit.starts_with(prefix));
    }
    Some(has_unit)
}

fn is_email(text: &str) -> Option<bool> {
    if matches(&PLAIN_EMAIL, text) {
        return Some(true);
    }
    (!text.contains('@')).then_some(false)
}

fn is_hostname(text: &str) -> Option<bool> {
    let mut spelled = String::with_capacity(text.len());
    for letter in text.chars() {
        spelled.push(match letter {
            _ if letter.is_ascii() => letter,
            // Emoji.
            '\u{1F300}'..='\u{1F64F}' => '$',
            // Combining accents.
            '\u{300}'..='\u{36F}' => '_',
            _ => is_letter(letter)?.then_some('a')?,
        });
    }
    let is_short = text.len() <= 255 && text.split('.').all(|label| label.len() <= 63);
    Some(is_short && matches(&HOSTNAME, &spelled))
}

/// With leading zeros.
fn is_ipv4(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 4
        && parts.iter().all(|part| {
            let number = part.trim_start_matches('0');
            is_digits(part)
                && number.len() <= 3
                && (number.is_empty() || number.parse::<u8>().is_ok())
        })
}

/// The parser of Go before 1.17. It also accepts groups with more than four digits.
fn is_sloppy_ipv6(text: &str) -> Option<bool> {
    let (groups, last) = text.rsplit_once(':').unwrap_or(("", text));
    if !text.contains(':')
        || text.contains(|letter: char| !letter.is_ascii_hexdigit() && !":.".contains(letter))
    {
        return Some(false);
    }
    if text.split([':', '.']).any(|group| group.len() > 4) {
        return None;
    }
    if last.contains('.') {
        let is_valid = last.parse::<Ipv4Addr>().is_ok() || is_ipv4(last);
        return Some(is_valid && format!("{groups}:0:0").parse::<Ipv6Addr>().is_ok());
    }
    Some(text.parse::<Ipv6Addr>().is_ok())
}

fn is_cidr(text: &str) -> Option<bool> {
    let Some((address, length)) = text.split_once('/') else { return Some(false) };
    let most = if is_ipv4(address) {
        32
    } else if is_sloppy_ipv6(address)? {
        128
    } else {
        return Some(false);
    };
    Some(is_digits(length) && length.parse::<u32>().is_ok_and(|length| length <= most))
}

/// `net.ParseMAC`.
fn is_mac(text: &str) -> bool {
    let is_split = |separator: char, digits: usize, counts: [usize; 3]| {
        let groups: Vec<&str> = text.split(separator).collect();
        counts.contains(&groups.len()) && groups.iter().all(|group| is_hex(group, digits))
    };
    is_split(':', 2, [6, 8, 20]) || is_split('-', 2, [6, 8, 20]) || is_split('.', 4, [3, 4, 10])
}

fn without_separators(text: &str) -> String {
    text.chars().filter(|letter| !"-\t\n\u{c}\r ".contains(*letter)).collect()
}

fn digits(text: &str) -> impl DoubleEndedIterator<Item = u32> + '_ {
    text.chars().filter_map(|digit| digit.to_digit(10))
}

fn is_isbn10(text: &str) -> bool {
    let text = without_separators(text);
    let Some((number, check)) = text.split_at_checked(9) else { return false };
    let check = match check {
        "X" => 10,
        _ if is_digits(check) && check.len() == 1 => digits(check).sum(),
        _ => return false,
    };
    let sum: u32 = (1..).zip(digits(number)).map(|(place, digit)| place * digit).sum();
    is_digits(number) && (sum + 10 * check).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let text = without_separators(text);
    let sum: u32 =
        digits(&text).zip([1, 3].into_iter().cycle()).map(|(digit, by)| digit * by).sum();
    text.len() == 13 && is_digits(&text) && sum.is_multiple_of(10)
}

/// All but digits is ignored.
fn is_credit_card(text: &str) -> bool {
    let number: String = text.chars().filter(char::is_ascii_digit).collect();
    let doubled = digits(&number).rev().zip([1, 2].into_iter().cycle());
    let sum: u32 = doubled.map(|(digit, by)| digit * by / 10 + digit * by % 10).sum();
    matches(&CREDIT_CARD, &number) && sum.is_multiple_of(10)
}

/// `url.ParseRequestURI`. Users, escapes in hosts and IPv6 addresses are not proven.
fn is_uri(text: &str) -> Option<bool> {
    if text.is_empty() || text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return Some(false);
    }
    if text == "*" {
        return Some(true);
    }
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && !"+-.".contains(letter));
    let (scheme, rest) = match text.split_at(end.unwrap_or(text.len())) {
        ("", rest) if rest.starts_with(':') => return Some(false),
        (scheme, rest) if scheme.starts_with(|first: char| first.is_ascii_alphabetic()) => {
            rest.strip_prefix(':').map_or(("", text), |rest| (scheme, rest))
        }
        _ => ("", text),
    };
    let hierarchy = rest.split_once('?').map_or(rest, |(hierarchy, _)| hierarchy);
    if !hierarchy.starts_with('/') {
        return Some(!scheme.is_empty());
    }
    let Some(authority) = hierarchy.strip_prefix("//").filter(|_| !scheme.is_empty()) else {
        return Some(has_valid_escapes(hierarchy));
    };
    let (host, path) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
    if !has_valid_escapes(path) {
        return Some(false);
    }
    if host.contains(['@', '%', '[', ']', '<', '>', '"']) || host.matches(':').count() > 1 {
        return None;
    }
    let port = host.split_once(':').map_or("", |(_, port)| port);
    let has_invalid = host.contains(|letter: char| {
        letter.is_ascii() && !letter.is_ascii_alphanumeric() && !"-_.~!$&'()*+,;=:".contains(letter)
    });
    Some((port.is_empty() || is_digits(port)) && !has_invalid)
}

fn has_valid_escapes(text: &str) -> bool {
    text.split('%').skip(1).all(|escape| {
        escape.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}
