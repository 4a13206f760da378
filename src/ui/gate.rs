//! Which requests are answered.
//!
//! A site on the internet can send requests to this port from a browser, and with a DNS entry of its own for 127.0.0.1
//! (DNS rebinding) also read the answers. Such requests have the site's name in `Host` or `Origin`. A port that other
//! machines can reach has any name, so there the address contains a token.

use std::io;
use std::net::SocketAddr;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use rustls::crypto::ring::default_provider;

/// The address, and the token if other machines can reach it.
#[derive(Debug)]
pub(super) struct Gate {
    address: SocketAddr,
    token: Option<String>,
}

/// A refused request, for the person before the browser.
pub(super) type Refusal = (StatusCode, String);

impl Gate {
    pub(super) fn at(address: SocketAddr) -> io::Result<Self> {
        let mut token = None;
        if !address.ip().is_loopback() {
            let mut bytes = [0; 16];
            let random = default_provider().secure_random;
            random.fill(&mut bytes).map_err(|_| io::Error::other("there are no random numbers"))?;
            token = Some(format!("{:032x}", u128::from_ne_bytes(bytes)));
        }
        Ok(Self { address, token })
    }

    pub(super) fn url(&self) -> String {
        match &self.token {
            Some(token) => format!("http://{}/?token={token}", self.address),
            None => format!("http://{}/", self.address),
        }
    }

    pub(super) fn admit(&self, request: &Request) -> Result<(), Refusal> {
        let header = |name: HeaderName| {
            let value = request.headers().get(name)?;
            Some(value.to_str().unwrap_or_default())
        };
        // A request line may contain the host, which then replaces the header (RFC 9112, section 3.2.2).
        let authority = request.uri().authority().map(|authority| authority.as_str());
        let host = authority.or_else(|| header(HOST)).unwrap_or_default();
        if self.token.is_none() && !self.is_own(host) {
            let message = format!("unexpected host; open {}\n", self.url());
            return Err((StatusCode::FORBIDDEN, message));
        }
        let is_foreign = header(ORIGIN).is_some_and(|origin| match origin.split_once("://") {
            Some((scheme, of)) => !scheme.starts_with("http") || of != host,
            None => true,
        });
        if is_foreign {
            return Err((StatusCode::FORBIDDEN, "a request of another site\n".to_owned()));
        }
        let Some(token) = &self.token else { return Ok(()) };
        let path = request.uri().path();
        let given = match path {
            "/" => request.uri().query().and_then(|query| query.strip_prefix("token=")),
            _ => header(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer ")),
        };
        // The other files are the same for everybody.
        let is_secret = path == "/" || path.starts_with("/calls/");
        if is_secret && !given.is_some_and(|given| is_equal(given, token)) {
            let message = "open the address that `statusgate ui` printed: it contains a token\n";
            return Err((StatusCode::UNAUTHORIZED, message.to_owned()));
        }
        Ok(())
    }

    /// Whether a host is this port, by a name that no DNS server can change.
    fn is_own(&self, host: &str) -> bool {
        let port = self.address.port();
        host == self.address.to_string() || host == format!("localhost:{port}")
    }
}

/// Compares all bytes, so that the time does not tell how many are right.
fn is_equal(one: &str, other: &str) -> bool {
    let differences =
        one.bytes().zip(other.bytes()).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differences == 0
}
