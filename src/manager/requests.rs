//! Counts the requests to the API server.

use crate::cluster::ClusterError;
use crate::telemetry::Metrics;

/// Counts a request by its result. A missing object that is no error counts as a success.
pub(super) fn counted<T>(
    metrics: &Metrics,
    purpose: &'static str,
    result: Result<T, ClusterError>,
) -> Result<T, ClusterError> {
    let code = result.as_ref().map_or_else(ClusterError::code, |_| Some(200));
    metrics.api_request(purpose, code);
    result
}
