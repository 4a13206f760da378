//! The objects for cert-manager: an authority and a serving certificate, and the registrations that get
//! its caBundle.

use serde_json::{Value, json};

use super::{Certificates, Installation, NAME, SECRET, labels};
use crate::manifests::registrations::{Kind, REGISTRATIONS};

/// The name of the Certificate of the authority, of its Secret and of its Issuer.
const AUTHORITY: &str = "statusgate-ca";

pub(super) fn objects(installation: &Installation) -> Vec<Value> {
    if installation.certificates != Certificates::CertManager {
        return Vec::new();
    }
    let mut objects = vec![
        self_signed(installation),
        authority(installation),
        issuer(installation),
        certificate(installation),
    ];
    if installation.manage_webhooks {
        let registrations = REGISTRATIONS.into_iter();
        objects.extend(registrations.map(|(kind, name)| registration(installation, kind, name)));
    }
    objects
}

fn self_signed(installation: &Installation) -> Value {
    json!({
        "#": "Self-signed issuer, CA, CA issuer, serving certificate. With a CA, the caBundle stays valid when the serving \
              certificate changes.",
        "apiVersion": "cert-manager.io/v1",
        "kind": "Issuer",
        "metadata": installation.metadata("statusgate-selfsigned"),
        "spec": {"selfSigned": {}},
    })
}

fn authority(installation: &Installation) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": installation.metadata(AUTHORITY),
        "spec": {
            "commonName": AUTHORITY,
            "#duration": "Ten years: only the API servers trust it, and only for these webhooks.",
            "duration": "87600h",
            "isCA": true,
            "issuerRef": {"group": "cert-manager.io", "kind": "Issuer", "name": "statusgate-selfsigned"},
            "privateKey": {
                "algorithm": "ECDSA",
                "#rotationPolicy": "The renewed CA keeps its key and name, so both verify the same serving certificates. With a \
                    new key, calls would fail for about a minute: API servers have the new caBundle, but the pods not yet the \
                    new certificate.",
                "rotationPolicy": "Never",
                "size": 256,
            },
            "#renewBefore": "Half a year, twice the lifetime of a serving certificate: no serving certificate outlives its CA.",
            "renewBefore": "4320h",
            "secretName": AUTHORITY,
        },
    })
}

fn issuer(installation: &Installation) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Issuer",
        "metadata": installation.metadata(AUTHORITY),
        "spec": {"ca": {"secretName": AUTHORITY}},
    })
}

fn certificate(installation: &Installation) -> Value {
    let host = format!("{NAME}.{}.svc", installation.namespace);
    json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": installation.metadata(SECRET),
        "spec": {
            "#dnsNames": "API servers use SERVICE.NAMESPACE.svc in every cluster; the long name is for curl from a pod.",
            "dnsNames": [host, format!("{host}.cluster.local")],
            "#duration": "Ninety days, renewed after sixty: a month to notice a failing renewal. The server also supports \
                shorter lifetimes: it loads a new certificate without closing connections.",
            "duration": "2160h",
            "issuerRef": {"group": "cert-manager.io", "kind": "Issuer", "name": AUTHORITY},
            "privateKey": {
                "#algorithm": "P-256: a handshake costs the server a tenth of one with RSA-2048.",
                "algorithm": "ECDSA",
                "encoding": "PKCS8",
                "#rotationPolicy": "A new key for every certificate, so that a leaked key is useful for at most ninety days. The \
                    default since cert-manager 1.18.",
                "rotationPolicy": "Always",
                "size": 256,
            },
            "renewBefore": "720h",
            "secretName": SECRET,
            "usages": ["digital signature", "server auth"],
        },
    })
}

fn registration(installation: &Installation, kind: Kind, name: &str) -> Value {
    let mut registration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind.name(),
        "metadata": {
            "name": name,
            "annotations": {
                "cert-manager.io/inject-ca-from": format!("{}/{SECRET}", installation.namespace),
            },
            "labels": labels(),
        },
    });
    if kind == Kind::Mutating {
        registration["#"] =
            "The server adds the webhooks and their rules. cert-manager's cainjector adds the caBundle, which is the ca.crt in the \
             Secret of this Certificate: the CA that signed the current serving certificate. The CA's own Certificate would be \
             newer after a renewal of the CA."
                .into();
    }
    registration
}
