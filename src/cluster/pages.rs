//! Paged listing: a page is the text that came, split into objects without parsing them.

use hyper::body::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use http::Method;

use super::client::{Silence, passes};
use super::{Answer, Cluster, ClusterError, Patience, Target};

/// Which of a target's objects, and how many at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Objects a page, at most.
    pub limit: u32,
    /// Only this namespace; empty for all.
    pub namespace: String,
    /// Only what this label selector selects; empty for all.
    pub selector: String,
}

impl Default for Query {
    /// All objects, 500 at a time: what kubectl and client-go ask for.
    fn default() -> Self {
        Self { limit: 500, namespace: String::new(), selector: String::new() }
    }
}

/// A list in the middle of being read.
pub struct Pages {
    cluster: Cluster,
    target: Target,
    query: Query,
    token: String,
    state: State,
    restarts: u32,
    /// How long a page that fails is tried again.
    patience: Patience,
    /// Whether a page came: this account may list.
    allowed: bool,
    /// Objects of the next page, at most.
    limit: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The next page is the one of the token.
    More {
        /// Whether what follows is little enough to be had at once.
        little: bool,
    },
    Over,
}

/// One page, as it came.
#[derive(Clone, Debug)]
pub struct Page {
    body: Bytes,
    /// How many objects follow on later pages, where the server says so; with a selector it does
    /// not.
    pub remaining: Option<u64>,
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    metadata: ListMetadata,
}

#[derive(Default, Deserialize)]
struct ListMetadata {
    #[serde(rename = "continue", default)]
    token: String,
    #[serde(rename = "remainingItemCount", default)]
    remaining: Option<u64>,
}

impl Cluster {
    /// The objects of a target, page by page.
    #[must_use]
    pub fn pages(&self, target: &Target, query: &Query) -> Pages {
        Pages {
            cluster: self.clone(),
            target: target.clone(),
            query: query.clone(),
            token: String::new(),
            state: State::More { little: false },
            restarts: 0,
            patience: Patience::LONG,
            allowed: false,
            limit: query.limit,
        }
    }

    /// How many objects a target has, where the server tells: not with a selector, for which it would
    /// only go through all of them.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn count(&self, target: &Target, query: &Query) -> Result<Option<u64>, ClusterError> {
        if !query.selector.is_empty() {
            return Ok(None);
        }
        let first = Query { limit: 1, ..query.clone() };
        // Only a bar wants to know.
        let mut pages = Pages { patience: Patience::SHORT, ..self.pages(target, &first) };
        let Some(page) = pages.next().await? else { return Ok(Some(0)) };
        let items = page.items().map_err(|source| bad(target, source))?.len() as u64;
        Ok(Some(items + page.remaining.unwrap_or_default()))
    }

    /// Whether a target's kind is gone. A 404 alone does not say so: for some moments after a
    /// restart the API server knows none of its custom resources.
    pub(super) async fn is_removed(&self, target: &Target) -> bool {
        if target.group.is_empty() {
            return false;
        }
        let path = crd_path(&target.name());
        match self.send(Method::GET, &path, "", Vec::new()).await {
            // Said by the storage of definitions, with a name, and not by a router.
            Ok(answer) => answer.status == 404 && answer.said().details.name == target.name(),
            Err(_) => false,
        }
    }
}

impl Pages {
    /// The same from a small page on, each of the next ones twice as large until they are as large as
    /// asked for: for who has work to do with the first objects, while the server makes more. And the
    /// first page tells how large the objects are before there are 500 of them.
    #[must_use]
    pub fn growing(mut self) -> Self {
        self.limit = self.query.limit.min(FIRST_PAGE);
        self
    }

    /// Whether so little seems to follow the page that came, the first one, that [`Self::all`] is worth a
    /// try.
    #[must_use]
    pub fn are_little(&self) -> bool {
        self.state == State::More { little: true }
    }

    /// All objects as one page, those that came already too, from the API server's watch cache: as
    /// they are since somebody wrote an object of this kind and got this resourceVersion. Where there is no
    /// such answer, or it is too large after all, the next page.
    ///
    /// The version of a list would not do: it is that of etcd, and a cache that nothing was written to
    /// for a while does not know that it is up to date. It keeps whoever asks waiting for three seconds, and
    /// then refuses (tried on 1.20).
    ///
    /// # Errors
    /// Those of [`Self::next`].
    pub async fn all(&mut self, since: &str) -> Result<Option<Page>, ClusterError> {
        let path = self.path_of_all(since);
        let answer = self.cluster.send_for(Method::GET, &path, "", Vec::new(), LITTLE).await;
        match answer {
            Ok(answer) if answer.status < 300 => self.page(answer.body).map(Some),
            _ => self.next().await,
        }
    }

    /// The next page; `None` after the last one.
    ///
    /// A token that has expired (etcd's compaction, five minutes by default) is replaced by the one
    /// the server sends along, which goes on after the last object at the present state. Where
    /// there is none, the list begins anew, and objects come again.
    ///
    /// # Errors
    /// When the objects cannot be listed. The kind may have been removed meanwhile.
    pub async fn next(&mut self) -> Result<Option<Page>, ClusterError> {
        if self.state == State::Over {
            return Ok(None);
        }
        let what = format!("list {}", self.target.name());
        let mut backoff = self.patience.start();
        loop {
            let answer = self.cluster.send(Method::GET, &self.path(), "", Vec::new()).await;
            let asked = answer.as_ref().ok().and_then(|answer| answer.retry_after);
            match &answer {
                Ok(answer) if answer.status < 300 => {
                    return self.page(answer.body.clone()).map(Some);
                }
                Ok(answer) if answer.status == 410 && !self.token.is_empty() => {
                    self.token = answer.said().metadata.continue_;
                    self.restarts += 1;
                    if self.restarts <= MAX_RESTARTS {
                        continue;
                    }
                }
                _ => {}
            }
            let missing = answer.as_ref().is_ok_and(|answer| answer.status == 404);
            if missing && self.cluster.is_removed(&self.target).await {
                return Err(ClusterError::KindRemoved { resource: self.target.name() });
            }
            match backoff.wait(asked) {
                Some(wait) if self.is_worth_another_try(&answer) => tokio::time::sleep(wait).await,
                _ => return Err(self.cluster.failed(&what, answer)),
            }
        }
    }

    fn page(&mut self, body: Bytes) -> Result<Page, ClusterError> {
        let envelope: Envelope =
            serde_json::from_slice(&body).map_err(|source| bad(&self.target, source))?;
        self.allowed = true;
        let ListMetadata { token, remaining } = envelope.metadata;
        let is_first = self.token.is_empty();
        self.state = if token.is_empty() {
            State::Over
        } else {
            // If they are as large as those of this page, which need not be: `all` looks at what comes.
            let bytes =
                |count: u64| count.saturating_mul(body.len() as u64) / u64::from(self.limit.max(1));
            let little =
                remaining.is_some_and(|count| count <= FEW && bytes(count) <= LITTLE as u64 / 2);
            State::More { little: is_first && little }
        };
        self.token = token;
        // Flat memory for objects of any size: the next page is smaller where this one is large.
        if body.len() > LARGE_PAGE {
            let fewer = u64::from(self.limit) * LARGE_PAGE as u64 / body.len() as u64;
            self.query.limit = u32::try_from(fewer).unwrap_or(1).max(1);
        }
        self.limit = self.limit.saturating_mul(2).min(self.query.limit);
        Ok(Page { body, remaining })
    }

    /// For some moments after a restart the API server knows none of its custom resources (see
    /// [`Cluster::is_removed`]), and may not have read its roles yet.
    fn is_worth_another_try(&self, answer: &Result<Answer, Silence>) -> bool {
        let fresh = answer.as_ref().is_ok_and(|answer| match answer.status {
            404 => true,
            401 | 403 => self.allowed,
            _ => false,
        });
        passes(answer) || fresh
    }

    fn path(&self) -> String {
        let Query { namespace, selector, .. } = &self.query;
        let mut path = format!("{}?limit={}", self.target.path(namespace), self.limit);
        for (name, value) in [("labelSelector", selector), ("continue", &self.token)] {
            if !value.is_empty() {
                path.push_str(&format!("&{name}={}", encoded(value)));
            }
        }
        path
    }

    /// Without a limit: with one, the API server asks etcd.
    fn path_of_all(&self, version: &str) -> String {
        let Query { namespace, selector, .. } = &self.query;
        let path = format!("{}?resourceVersion={}", self.target.path(namespace), encoded(version));
        if selector.is_empty() {
            path
        } else {
            format!("{path}&labelSelector={}", encoded(selector))
        }
    }
}

impl Page {
    /// The objects, each as its text.
    ///
    /// # Errors
    /// When the page is no list.
    pub fn items(&self) -> Result<Vec<&str>, serde_json::Error> {
        let list: List<'_> = serde_json::from_slice(&self.body)?;
        Ok(list.items.into_iter().map(RawValue::get).collect())
    }
}

/// Where the definition of a custom resource is.
pub(super) fn crd_path(name: &str) -> String {
    format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
}

/// A value as it may stand in a query.
pub(super) fn encoded(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

fn bad(target: &Target, source: serde_json::Error) -> ClusterError {
    ClusterError::BadAnswer { what: format!("list {}", target.name()), source }
}

/// The API server takes half a millisecond for an object of a page, one after the other: before 500
/// of them are there, eight writers have stood idle for as long as a hundred writes take.
const FIRST_PAGE: u32 = 50;

/// 500 objects of 16 KB.
const LARGE_PAGE: usize = 8 << 20;

/// What the API server reads from its watch cache costs it a fourth of what it decodes from etcd, but
/// it makes all of it at once, and here it lies in memory at once: no more than this is taken, and what
/// looks like more than half of it not asked for.
const LITTLE: usize = 3 * LARGE_PAGE;

/// However small the first ones are.
const FEW: u64 = 5_000;

/// Each takes a page's worth of objects with it at least, unless something is badly wrong.
const MAX_RESTARTS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_split_into_texts() {
        let body = Bytes::from_static(
            br#"{"kind":"L","metadata":{"continue":"x"},"items":[{"a":1}, {"b":[2, 3]}]}"#,
        );
        let page = Page { body, remaining: None };
        assert_eq!(page.items().unwrap(), [r#"{"a":1}"#, r#"{"b":[2, 3]}"#]);
    }

    #[test]
    fn a_query_may_hold_anything() {
        assert_eq!(encoded("a in (b,c),d!=é"), "a%20in%20%28b%2Cc%29%2Cd%21%3D%C3%A9");
    }
}
