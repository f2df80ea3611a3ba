//! Text that many requests share, plain and compressed.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use flate2::{Compress, Compression, Crc, FlushCompress};
use tokio::sync::OnceCell;

/// The header of a gzip stream: deflate, without name and time.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// The level of compression: higher ones cost more than they save.
const LEVEL: u32 = 6;

/// The bytes to which a block can refer.
const WINDOW: usize = 32 << 10;

/// The last block of a deflate stream, empty.
const LAST: [u8; 2] = [3, 0];

/// A text, compressed at the first request for that.
#[derive(Debug)]
pub(crate) struct Packed {
    plain: Bytes,
    deflated: OnceLock<Bytes>,
    /// The text as blocks that refer to the last parts of a stream before it, by those parts.
    chained: Mutex<Vec<Chained>>,
}

/// The parts of a stream before a text, and the blocks behind them, made by the first who asks.
type Chained = (Vec<Weak<Packed>>, Arc<OnceCell<Option<Bytes>>>);

/// The most different parts before a text for which its blocks are kept.
const CHAINED_MOST: usize = 16;

/// The parts of a stream to which the next one refers.
pub(crate) const BEFORE_MOST: usize = 4;

impl Packed {
    pub(crate) fn new(text: String) -> Packed {
        Packed { plain: text.into(), deflated: OnceLock::new(), chained: Mutex::default() }
    }

    /// Returns the text as blocks of a deflate stream. They refer to nothing before them and are complete, so they can follow any others.
    pub(crate) fn deflated(&self) -> Bytes {
        self.deflated.get_or_init(|| deflate(&[], &self.plain).into()).clone()
    }

    /// Returns the text as the part of a stream behind others. Events resemble those before them, so the blocks refer to these. Streams with
    /// the same parts share the work. Returns `None` after a panic.
    pub(crate) async fn part(self: &Arc<Packed>, before: &[Arc<Packed>], compressed: bool) -> Option<Bytes> {
        if !compressed {
            return Some(self.plain.clone());
        }
        let (text, others, cell) = (Arc::clone(self), before.to_vec(), self.behind(before));
        let make = async move {
            let before = move || others.iter().flat_map(|other| other.plain.clone()).collect::<Vec<u8>>();
            tokio::task::spawn_blocking(move || deflate(&before(), &text.plain)).await.ok().map(Bytes::from)
        };
        cell.get_or_init(|| make).await.clone()
    }

    fn behind(&self, before: &[Arc<Packed>]) -> Arc<OnceCell<Option<Bytes>>> {
        let mut chained = self.chained.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |others: &[Weak<Packed>]| {
            others.len() == before.len()
                && others.iter().zip(before).all(|(one, other)| one.as_ptr() == Arc::as_ptr(other))
        };
        if let Some((_, known)) = chained.iter().find(|(others, _)| is_same(others)) {
            return Arc::clone(known);
        }
        if chained.len() >= CHAINED_MOST {
            chained.remove(0);
        }
        let cell = Arc::default();
        chained.push((before.iter().map(Arc::downgrade).collect(), Arc::clone(&cell)));
        cell
    }

    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.plain).into_owned()
    }

    /// Returns the text as the answer to a request with these headers.
    pub(crate) fn answer(&self, headers: &HeaderMap) -> Response {
        self.answer_as("application/json", headers)
    }

    /// Returns the text as an answer of this type.
    pub(crate) fn answer_as(&self, kind: &'static str, headers: &HeaderMap) -> Response {
        let compressed = takes_gzip(headers);
        let body = if compressed { self.gzip().into() } else { Body::from(self.plain.clone()) };
        response(body, kind, compressed)
    }

    fn gzip(&self) -> Vec<u8> {
        let mut sum = Crc::new();
        sum.update(&self.plain);
        let ends = [sum.sum().to_le_bytes(), sum.amount().to_le_bytes()];
        [&HEAD[..], &self.deflated(), &LAST, ends.as_flattened()].concat()
    }
}

/// Returns the begin of a stream.
pub(crate) const fn stream_head() -> Bytes {
    Bytes::from_static(&HEAD)
}

/// Returns an answer.
pub(crate) fn response(body: Body, kind: &'static str, compressed: bool) -> Response {
    let mut response =
        ([(header::CONTENT_TYPE, kind), (header::VARY, "accept-encoding")], body).into_response();
    if compressed {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Returns whether a reader takes gzip.
pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    let listed = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    listed.is_some_and(|listed| listed.split(',').any(|one| one.trim() == "gzip"))
}

/// Returns a text as blocks that may refer to the text before it.
fn deflate(before: &[u8], text: &[u8]) -> Vec<u8> {
    let mut stream = Compress::new(Compression::new(LEVEL), false);
    let before = &before[before.len().saturating_sub(WINDOW)..];
    // A reader has its blocks already.
    blocks(&mut stream, before);
    blocks(&mut stream, text)
}

fn blocks(stream: &mut Compress, text: &[u8]) -> Vec<u8> {
    let (mut out, begin) = (Vec::with_capacity(text.len() / 4 + 64), stream.total_in());
    loop {
        let read = usize::try_from(stream.total_in() - begin).unwrap_or(text.len());
        // Memory never fails it, and any input is valid.
        let _ = stream.compress_vec(&text[read..], &mut out, FlushCompress::Sync);
        if stream.total_in() - begin == text.len() as u64 && out.len() < out.capacity() {
            return out;
        }
        out.reserve(out.capacity() + 64);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn an_answer_is_a_gzip_file() {
        for length in [0, 1, 100, 300_000_u64] {
            let text: String = (0..length).map(|place| (place * place).to_string()).collect();
            let mut read = String::new();
            GzDecoder::new(&*Packed::new(text.clone()).gzip()).read_to_string(&mut read).unwrap();
            assert_eq!(read, text);
        }
    }

    #[tokio::test]
    async fn parts_of_a_stream_can_be_read_as_they_come() {
        let squares: String = (0..3000_u64).map(|number| (number * number).to_string()).collect();
        let text = |number: u32| format!("{squares}number {number}");
        let parts = [1, 2, 3, 4].map(|number| Arc::new(Packed::new(text(number))));
        let mut bytes = HEAD.to_vec();
        // The third part is for a reader that has just come.
        for (part, before) in parts.iter().zip([&parts[..0], &parts[..1], &parts[..0], &parts[1..3]]) {
            let part = part.part(before, true).await.unwrap();
            assert!(before.is_empty() || part.len() < 300, "{} bytes", part.len());
            bytes.extend(part);
        }
        let expected: String = [1, 2, 3, 4].map(text).concat();
        let mut read = vec![0; expected.len()];
        GzDecoder::new(&*bytes).read_exact(&mut read).unwrap();
        assert!(read == expected.as_bytes());
    }
}
