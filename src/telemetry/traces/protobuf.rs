//! Spans as `ExportTraceServiceRequest` of OTLP 1.x, in the protobuf encoding. The numbers are those of
//! `opentelemetry/proto/trace/v1/trace.proto`; a test decodes the result with the published types.

use super::{Finished, Value};

/// One request with all spans of a batch.
pub(super) fn request(resource: &[(String, String)], spans: &[Finished]) -> Vec<u8> {
    let mut out = Message::default();
    out.message(1, |resource_spans| {
        resource_spans.message(1, |fields| {
            for (key, value) in resource {
                fields.attribute(1, key, |fields| fields.bytes(1, value.as_bytes()));
            }
        });
        resource_spans.message(2, |scope_spans| {
            scope_spans.message(1, |scope| {
                scope.bytes(1, env!("CARGO_PKG_NAME").as_bytes());
                scope.bytes(2, env!("CARGO_PKG_VERSION").as_bytes());
            });
            for span in spans {
                scope_spans.message(2, |fields| fields.span(span));
            }
        });
    });
    out.0
}

#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn span(&mut self, span: &Finished) {
        self.bytes(1, &span.trace);
        self.bytes(2, &span.id);
        // Sampled, and whether the parent is in another process: both are known.
        let mut flags =
            u32::from(span.parent.as_ref().map_or(1, |parent| parent.flags)) | HAS_IS_REMOTE;
        if let Some(parent) = &span.parent {
            self.bytes(3, parent.state.as_bytes());
            self.bytes(4, &parent.span);
            flags |= IS_REMOTE;
        }
        self.bytes(5, span.name.as_bytes());
        self.number(6, KIND_SERVER);
        self.fixed64(7, span.start);
        self.fixed64(8, span.end);
        for (key, value) in &span.attributes {
            self.attribute(9, key, |fields| fields.value(value));
        }
        if span.failed {
            self.message(15, |status| status.number(3, STATUS_ERROR));
        }
        self.tag(16, FIXED32);
        self.0.extend(flags.to_le_bytes());
    }

    /// A `KeyValue` with an `AnyValue`.
    fn attribute(&mut self, field: u64, key: &str, value: impl FnOnce(&mut Self)) {
        self.message(field, |fields| {
            fields.bytes(1, key.as_bytes());
            fields.message(2, value);
        });
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Text(text) => self.bytes(1, text.as_bytes()),
            Value::Flag(flag) => self.number(2, u64::from(*flag)),
            // A negative number has ten bytes, as two's complement.
            Value::Number(number) => self.number(3, number.cast_unsigned()),
            Value::List(texts) => self.message(5, |array| {
                for text in texts {
                    array.message(1, |value| value.bytes(1, text.as_bytes()));
                }
            }),
        }
    }

    fn message(&mut self, field: u64, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.tag(field, LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn number(&mut self, field: u64, number: u64) {
        self.tag(field, VARINT);
        self.varint(number);
    }

    fn fixed64(&mut self, field: u64, number: u64) {
        self.tag(field, FIXED64);
        self.0.extend(number.to_le_bytes());
    }

    fn tag(&mut self, field: u64, wire_type: u64) {
        self.varint(field << 3 | wire_type);
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }
}

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;
const FIXED32: u64 = 5;

/// `SPAN_KIND_SERVER`
const KIND_SERVER: u64 = 2;
/// `STATUS_CODE_ERROR`
const STATUS_ERROR: u64 = 2;
/// `SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK`
const HAS_IS_REMOTE: u32 = 0x100;
/// `SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK`
const IS_REMOTE: u32 = 0x200;
