//! Objects of a kind for one writer.
//!
//! Plain JSON, because a typed object would hide the difference between a null member and an absent one.

use http::Request as HttpRequest;
use kube::api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{Request, Status};
use kube::{Client, Error};
use serde_json::{Value, json};

/// A kind and its API path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) path: &'static str,
}

/// With the status subresource, cluster-scoped; `billing` is not nullable.
pub(crate) const COMPOSITE: Kind = Kind {
    api_version: "vshn.appcat.vshn.io/v1",
    kind: "XVSHNPostgreSQL",
    path: "/apis/vshn.appcat.vshn.io/v1/xvshnpostgresqls",
};

/// The same, namespaced.
pub(crate) const CLAIM: Kind = Kind {
    api_version: "vshn.appcat.vshn.io/v1",
    kind: "VSHNPostgreSQL",
    path: "/apis/vshn.appcat.vshn.io/v1/namespaces/default/vshnpostgresqls",
};

/// Without the status subresource. The schema accepts every status.
pub(crate) const WIDGET: Kind = Kind {
    api_version: "test.statusgate.dev/v1",
    kind: "Widget",
    path: "/apis/test.statusgate.dev/v1/widgets",
};

/// With the status subresource and a nullable `billing`.
pub(crate) const GADGET: Kind = Kind {
    api_version: "test.statusgate.dev/v1",
    kind: "Gadget",
    path: "/apis/test.statusgate.dev/v1/gadgets",
};

/// The cluster's own kinds that the tests create.
pub(crate) const CRD: Kind = Kind {
    api_version: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
};
pub(crate) const MUTATING: Kind = Kind {
    api_version: "admissionregistration.k8s.io/v1",
    kind: "MutatingWebhookConfiguration",
    path: "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
};
pub(crate) const VALIDATING: Kind = Kind {
    api_version: "admissionregistration.k8s.io/v1",
    kind: "ValidatingWebhookConfiguration",
    path: "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
};

pub(crate) const CLUSTER_ROLE: Kind = Kind {
    api_version: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    path: "/apis/rbac.authorization.k8s.io/v1/clusterroles",
};
pub(crate) const CLUSTER_ROLE_BINDING: Kind = Kind {
    api_version: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    path: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
};

pub(crate) const NAMESPACE: Kind =
    Kind { api_version: "v1", kind: "Namespace", path: "/api/v1/namespaces" };

/// statusgate's own kinds.
pub(crate) const POLICY: Kind = Kind {
    api_version: "statusgate.dev/v1alpha1",
    kind: "StatusPolicy",
    path: "/apis/statusgate.dev/v1alpha1/statuspolicies",
};
pub(crate) const CONVENTION: Kind = Kind {
    api_version: "statusgate.dev/v1alpha1",
    kind: "StatusConvention",
    path: "/apis/statusgate.dev/v1alpha1/statusconventions",
};

/// What statusgate keeps in its namespace.
pub(crate) const SECRET: Kind = Kind {
    api_version: "v1",
    kind: "Secret",
    path: "/api/v1/namespaces/statusgate-system/secrets",
};
pub(crate) const LEASE: Kind = Kind {
    api_version: "coordination.k8s.io/v1",
    kind: "Lease",
    path: "/apis/coordination.k8s.io/v1/namespaces/statusgate-system/leases",
};

/// All objects of a kind, with the rights and the name of one user.
#[derive(Clone)]
pub(crate) struct Objects {
    client: Client,
    kind: Kind,
    request: Request,
}

pub(crate) type Outcome = Result<Value, Error>;

impl Objects {
    pub(crate) fn new(client: Client, kind: Kind) -> Self {
        Self { client, kind, request: Request::new(kind.path) }
    }

    /// A document of this kind with no more than a name.
    pub(crate) fn named(&self, name: &str) -> Value {
        let Kind { api_version, kind, .. } = self.kind;
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})
    }

    pub(crate) async fn create(&self, object: &Value) -> Outcome {
        self.send(self.request.create(&PostParams::default(), bytes(object))).await
    }

    pub(crate) async fn get(&self, name: &str) -> Outcome {
        self.send(self.request.get(name, &GetParams::default())).await
    }

    pub(crate) async fn list(&self) -> Outcome {
        self.send(self.request.list(&ListParams::default())).await
    }

    /// Server-side apply of the main resource.
    pub(crate) async fn apply(&self, name: &str, manager: &str, object: Value) -> Outcome {
        let params = PatchParams::apply(manager);
        self.send(self.request.patch(name, &params, &Patch::Apply(object))).await
    }

    /// The same as a dry run.
    pub(crate) async fn dry_apply(&self, name: &str, manager: &str, object: Value) -> Outcome {
        let params = PatchParams { dry_run: true, ..PatchParams::apply(manager) };
        self.send(self.request.patch(name, &params, &Patch::Apply(object))).await
    }

    pub(crate) async fn delete(&self, name: &str) -> Outcome {
        self.send(self.request.delete(name, &DeleteParams::default())).await
    }

    /// Deletes all objects of the path of this kind.
    pub(crate) async fn delete_all(&self) -> Outcome {
        self.send(self.request.delete_collection(&DeleteParams::default(), &ListParams::default()))
            .await
    }

    /// PUT of the main resource.
    pub(crate) async fn put(&self, object: &Value) -> Outcome {
        let params = PostParams::default();
        self.send(self.request.replace(name_of(object), &params, bytes(object))).await
    }

    /// A merge patch of the main resource.
    pub(crate) async fn merge(&self, name: &str, patch: Value) -> Outcome {
        let params = PatchParams::default();
        self.send(self.request.patch(name, &params, &Patch::Merge(patch))).await
    }

    /// PUT of `/status`.
    pub(crate) async fn put_status(&self, object: &Value) -> Outcome {
        let params = PostParams::default();
        let name = name_of(object);
        self.send(self.request.replace_subresource("status", name, &params, bytes(object))).await
    }

    /// A merge patch of `/status` that contains `status`.
    pub(crate) async fn merge_status(&self, name: &str, status: Value) -> Outcome {
        self.merge_status_with(name, status, PatchParams::default()).await
    }

    /// The same as a dry run.
    pub(crate) async fn dry_merge_status(&self, name: &str, status: Value) -> Outcome {
        self.merge_status_with(name, status, PatchParams { dry_run: true, ..Default::default() })
            .await
    }

    /// Server-side apply of `/status`.
    pub(crate) async fn apply_status(&self, name: &str, manager: &str, status: Value) -> Outcome {
        self.apply_status_with(name, PatchParams::apply(manager), status).await
    }

    /// Server-side apply of `/status` with force, as Crossplane does.
    pub(crate) async fn force_status(&self, name: &str, manager: &str, status: Value) -> Outcome {
        self.apply_status_with(name, PatchParams::apply(manager).force(), status).await
    }

    async fn merge_status_with(&self, name: &str, status: Value, params: PatchParams) -> Outcome {
        let patch = Patch::Merge(json!({"status": status}));
        self.send(self.request.patch_subresource("status", name, &params, &patch)).await
    }

    async fn apply_status_with(&self, name: &str, params: PatchParams, status: Value) -> Outcome {
        let mut object = self.named(name);
        object["status"] = status;
        let patch = Patch::Apply(object);
        self.send(self.request.patch_subresource("status", name, &params, &patch)).await
    }

    async fn send(
        &self,
        request: Result<HttpRequest<Vec<u8>>, kube::core::request::Error>,
    ) -> Outcome {
        self.client.request(request.map_err(Error::BuildRequest)?).await
    }
}

/// The answer of the API server to a rejected write.
pub(crate) fn refusal(outcome: Outcome) -> Status {
    match outcome {
        Err(Error::Api(status)) => *status,
        Err(error) => panic!("no answer of the API server: {error}"),
        Ok(object) => panic!("the write should have been refused; stored is {object:#}"),
    }
}

/// `Ready=True`, since a given second.
pub(crate) fn condition(kind: &str, status: &str, second: u32) -> Value {
    json!({"type": kind, "status": status, "reason": "Tested", "lastTransitionTime": time(second)})
}

/// A time in the past.
pub(crate) fn time(second: u32) -> String {
    format!("2024-06-01T12:{:02}:{:02}Z", second / 60 % 60, second % 60)
}

/// The condition of an object with this type, or null.
pub(crate) fn condition_of<'v>(object: &'v Value, kind: &str) -> &'v Value {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.and_then(|list| list.iter().find(|condition| condition["type"] == kind));
    found.unwrap_or(&Value::Null)
}

pub(crate) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().expect("an object has a name")
}

fn bytes(object: &Value) -> Vec<u8> {
    object.to_string().into_bytes()
}
