//! The page of the documentation site, which `make site` builds.

use std::fs;
use std::io::{BufRead, BufReader, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;

use crate::command::STATUSGATE;

/// Serves the files of the page until the process ends. Returns its address.
pub(super) fn serve() -> String {
    let target = Path::new(STATUSGATE).ancestors().nth(2).unwrap();
    let folder = target.join("site/play");
    assert!(folder.join("engine.wasm").exists(), "run make site: {} is absent", folder.display());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let page = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let folder = folder.clone();
            thread::spawn(move || answer(&stream.unwrap(), folder));
        }
    });
    page
}

fn answer(mut stream: &TcpStream, mut folder: PathBuf) -> Result<()> {
    let mut lines = BufReader::new(stream).lines();
    // A browser also opens connections without a request.
    let Some(first) = lines.next() else { return Ok(()) };
    let first = first?;
    let path = first.split([' ', '?']).nth(1).unwrap_or_default().trim_start_matches('/');
    folder.push(if path.is_empty() { "index.html" } else { path });
    let kind = match folder.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html",
        Some("css") => "text/css",
        Some("wasm") => "application/wasm",
        _ => "text/javascript",
    };
    // The browser waits until its request is read.
    lines.take_while(|line| line.as_ref().is_ok_and(|line| !line.is_empty())).for_each(drop);
    let (status, body) = match fs::read(&folder) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    )?;
    stream.write_all(&body)
}
