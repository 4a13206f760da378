//! Paged lists. A page is the received text, split into objects without parsing them.

use std::ops::Range;

use hyper::body::Bytes;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::value::RawValue;
use tokio::task::JoinHandle;

use super::call::{Call, Reply, passes, retry_after};
use super::{Cluster, ClusterError, Patience, Target};

/// Which objects of a target, and how many per page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The maximum number of objects per page.
    pub limit: u32,
    /// Only this namespace; empty for all.
    pub namespace: String,
    /// Only objects that match this label selector; empty for all.
    pub selector: String,
}

impl Default for Query {
    /// All objects, 500 per page like kubectl and client-go.
    fn default() -> Self {
        Self { limit: 500, namespace: String::new(), selector: String::new() }
    }
}

/// The pages of a list that are not read yet.
pub struct Pages {
    cluster: Cluster,
    target: Target,
    query: Query,
    /// The token of the next page, empty for the first one; `None` after the last one.
    token: Option<String>,
    /// Whether the first page was received and the others seem small enough for [`Self::all`].
    little: bool,
    restarts: u32,
    patience: Patience,
    /// Whether a page was received, so that this account may list.
    allowed: bool,
    /// The maximum number of objects of the next page.
    limit: u32,
}

/// A page that is fetched in the background.
pub(super) type Load = JoinHandle<(Pages, Result<Option<Page>, ClusterError>)>;

/// One page as received.
#[derive(Clone, Debug)]
pub struct Page {
    text: String,
    /// Where the objects lie in the text.
    items: Vec<Range<usize>>,
    /// The number of objects on later pages, if the server reports it. It does not with a selector.
    pub remaining: Option<u64>,
}

#[derive(Deserialize)]
struct ListBody<'a> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

impl Cluster {
    /// The objects of a target, page by page.
    pub fn pages(&self, target: &Target, query: &Query) -> Pages {
        Pages {
            cluster: self.clone(),
            target: target.clone(),
            query: query.clone(),
            token: Some(String::new()),
            little: false,
            restarts: 0,
            patience: Patience::LONG,
            allowed: false,
            limit: query.limit,
        }
    }

    /// The number of objects of a target, if the server reports it. It does not with a selector.
    ///
    /// # Errors
    /// When the objects cannot be listed.
    pub async fn count(&self, target: &Target, query: &Query) -> Result<Option<u64>, ClusterError> {
        if !query.selector.is_empty() {
            return Ok(None);
        }
        let first = Query { limit: 1, ..query.clone() };
        // Only the progress needs the number.
        let mut pages = Pages { patience: Patience::SHORT, ..self.pages(target, &first) };
        let Some(page) = pages.next().await? else { return Ok(Some(0)) };
        Ok(Some(page.items.len() as u64 + page.remaining.unwrap_or_default()))
    }

    /// Whether the CRD of a target was deleted. A 404 of its objects is no proof: for some moments
    /// after a restart, the API server does not know its custom resources.
    pub(super) async fn is_removed(&self, target: &Target) -> bool {
        let name = target.name();
        !target.group.is_empty()
            && self
                .send(&Call::get(&crd_path(&name)))
                .await
                .is_ok_and(|answer| answer.is_missing(&name))
    }
}

impl Pages {
    /// Starts with a small page and doubles the size up to the limit. Writers can then start while the
    /// server creates the next page, and the first page shows the size of the objects.
    pub fn growing(mut self) -> Self {
        self.limit = self.query.limit.min(FIRST_PAGE);
        self
    }

    /// Whether the rest of the list seems small enough for [`Self::all`].
    pub const fn are_little(&self) -> bool {
        self.little && self.token.is_some()
    }

    /// Fetches in the background: the next page, or [`Self::all`] objects since a version.
    pub(super) fn load(mut self, since: Option<String>) -> Load {
        tokio::spawn(async move {
            let page = match since {
                Some(version) => self.all(&version).await,
                None => self.next().await,
            };
            (self, page)
        })
    }

    /// All objects as one page, including those that were received, from the watch cache of the API
    /// server. `since` is the resourceVersion of a written object of this kind. The next page if the
    /// server does not support this, or the response is too large.
    ///
    /// The version of a list does not work: it is that of etcd, and without a recent write the cache
    /// does not know that it is up to date. It then waits for three seconds and fails (1.20).
    ///
    /// # Errors
    /// Those of [`Self::next`].
    pub async fn all(&mut self, since: &str) -> Result<Option<Page>, ClusterError> {
        // Without a limit: with one, the API server reads from etcd.
        let path = self.path(&[("resourceVersion", since)]);
        match self.cluster.send_up_to(&Call::get(&path), LITTLE).await {
            Ok(answer) if answer.status < 300 => self.page(answer.body).map(Some),
            _ => self.next().await,
        }
    }

    /// The next page; `None` after the last one.
    ///
    /// If the token expired (after five minutes by default), the server returns another one, which
    /// continues after the last object. Otherwise the list restarts and returns objects again.
    ///
    /// # Errors
    /// When the objects cannot be listed, for example because the kind was deleted.
    pub async fn next(&mut self) -> Result<Option<Page>, ClusterError> {
        let what = format!("list {}", self.target.name());
        let mut backoff = self.patience.start();
        loop {
            let Some(token) = &self.token else { return Ok(None) };
            let path = self.path(&[("limit", &self.limit.to_string()), ("continue", token)]);
            let reply = self.cluster.send(&Call::get(&path)).await;
            match reply {
                Ok(answer) if answer.status < 300 => return self.page(answer.body).map(Some),
                Ok(ref answer) if answer.status == 410 && !token.is_empty() => {
                    let metadata = answer.to_status().metadata.unwrap_or_default();
                    self.token = Some(metadata.continue_.unwrap_or_default());
                    self.restarts += 1;
                    if self.restarts <= MAX_RESTARTS {
                        continue;
                    }
                }
                Ok(ref answer)
                    if answer.status == 404 && self.cluster.is_removed(&self.target).await =>
                {
                    return Err(ClusterError::KindRemoved { resource: self.target.name() });
                }
                _ => {}
            }
            match backoff.wait(retry_after(&reply)) {
                Some(wait) if self.may_pass(&reply) => tokio::time::sleep(wait).await,
                _ => return Err(self.cluster.failed(&what, reply)),
            }
        }
    }

    fn page(&mut self, body: Bytes) -> Result<Page, ClusterError> {
        let (page, token) =
            Page::read(body.into()).map_err(|source| self.target.bad_list(source))?;
        self.little = self.token.as_ref().is_some_and(String::is_empty)
            && page.remaining.is_some_and(|count| {
                // An estimate: later objects may be larger. `all` limits the response.
                let bytes =
                    count.saturating_mul(page.text.len() as u64) / u64::from(self.limit.max(1));
                count <= FEW && bytes <= LITTLE as u64 / 2
            });
        self.allowed = true;
        self.token = token.filter(|token| !token.is_empty());
        // Constant memory for objects of any size: a smaller page follows a large one.
        if page.text.len() > LARGE_PAGE {
            let fewer = u64::from(self.limit) * LARGE_PAGE as u64 / page.text.len() as u64;
            self.query.limit = u32::try_from(fewer).unwrap_or(1).max(1);
        }
        self.limit = self.limit.saturating_mul(2).min(self.query.limit);
        Ok(page)
    }

    /// Whether a failure is temporary. For some moments after a restart, the API server does not know
    /// its custom resources ([`Cluster::is_removed`]) or its roles.
    fn may_pass(&self, reply: &Reply) -> bool {
        let fresh = reply.as_ref().is_ok_and(|answer| match answer.status {
            404 => true,
            401 | 403 => self.allowed,
            _ => false,
        });
        passes(reply) || fresh
    }

    fn path(&self, parameters: &[(&str, &str)]) -> String {
        let Query { namespace, selector, .. } = &self.query;
        let mut path = self.target.path(namespace);
        let mut sign = '?';
        for (name, value) in parameters.iter().chain(&[("labelSelector", selector.as_str())]) {
            if !value.is_empty() {
                path.push_str(&format!("{sign}{name}={}", encoded(value)));
                sign = '&';
            }
        }
        path
    }
}

impl Page {
    /// A page, and the token of the next one.
    fn read(body: Vec<u8>) -> Result<(Self, Option<String>), serde_json::Error> {
        let text = String::from_utf8(body).map_err(serde_json::Error::custom)?;
        let ListBody { metadata, items } = serde_json::from_str(&text)?;
        let start = text.as_ptr().addr();
        let items = items.into_iter().map(RawValue::get).map(|item| {
            let from = item.as_ptr().addr() - start;
            from..from + item.len()
        });
        let items = items.collect();
        let remaining = metadata.remaining_item_count.and_then(|count| u64::try_from(count).ok());
        Ok((Self { text, items, remaining }, metadata.continue_))
    }

    /// The texts of the objects.
    pub fn items(&self) -> impl Iterator<Item = &str> {
        self.items.iter().filter_map(|place| self.text.get(place.clone()))
    }
}

/// The path of the CRD with this name.
pub(super) fn crd_path(name: &str) -> String {
    format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
}

/// Percent-encodes a value of a query, or a name in a path.
pub(super) fn encoded(value: &str) -> PercentEncode<'_> {
    utf8_percent_encode(value, UNRESERVED)
}

/// What a query may contain as it is.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The API server needs half a millisecond per object of a page. For 500 objects, eight writers would
/// wait as long as a hundred writes take.
const FIRST_PAGE: u32 = 50;

/// 500 objects of 16 KB.
const LARGE_PAGE: usize = 8 << 20;

/// A list from the watch cache costs the API server a fourth of one from etcd, but both sides hold it
/// in memory at once. Larger responses are rejected; a list that seems half as large is not requested.
const LITTLE: usize = 3 * LARGE_PAGE;

/// The maximum number of objects of such a list, however small.
const FEW: u64 = 5_000;

/// Each restart follows at least one page of objects, unless something is wrong.
const MAX_RESTARTS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_split_into_texts() {
        let body = r#"{"kind":"L","metadata":{"continue":"x"},"items":[{"a":1}, {"b":[2, 3]}]}"#;
        let (page, token) = Page::read(body.into()).unwrap();
        assert_eq!(page.items().collect::<Vec<_>>(), [r#"{"a":1}"#, r#"{"b":[2, 3]}"#]);
        assert_eq!(token.unwrap(), "x");
        assert!(Page::read(b"{\"items\":[{\"a\":\"\xff\"}]}".into()).is_err(), "no UTF-8");
    }

    #[test]
    fn query_values_are_percent_encoded() {
        assert_eq!(encoded("a in (b,c),d!=é").to_string(), "a%20in%20%28b%2Cc%29%2Cd%21%3D%C3%A9");
    }
}
