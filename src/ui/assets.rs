//! The files of the page.

use axum::http::StatusCode;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse, Response};

/// The texts, by name.
macro_rules! texts {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("page/", $name)))),*]
    };
}

const TEXTS: [(&str, &str); 14] = texts!(
    "index.html" "style.css" "address.js" "calls.js" "checks.js" "cluster.js" "conventions.js" "dom.js" "graph.js" "main.js"
    "object.js" "outcome.js" "playground.js" "yaml.js"
);

/// The bundle of `hack/editor.sh`, compressed. Every browser accepts gzip.
const EDITOR: &[u8] = include_bytes!("page/editor.js.gz");

pub(super) fn response(name: &str) -> Response {
    let kind = match name.rsplit_once('.') {
        Some((_, "html")) => "text/html; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        _ => "text/javascript; charset=utf-8",
    };
    let text = TEXTS.into_iter().find(|(known, _)| *known == name);
    let mut response = match text {
        Some((_, text)) => text.into_response(),
        None if name == "editor.js" => ([(CONTENT_ENCODING, "gzip")], EDITOR).into_response(),
        None => return StatusCode::NOT_FOUND.into_response(),
    };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
