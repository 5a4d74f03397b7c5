// Runs a model with one ScatterND node in onnxruntime from C. ndscatter's library of custom
// operators runs the node.
//
//   cargo build --release -p ndscatter-onnxruntime
//   cd adapters/onnxruntime/examples/c
//   ./build.sh && ./session ../../../../target/release/libndscatter_onnxruntime.so
//
// The Python packages of onnxruntime contain its library but not its header onnxruntime_c_api.h.
// This file therefore declares the functions of onnxruntime that it uses. A program that includes
// the header needs no such declarations and calls api->Run(..) instead of ORT(Run)(..).

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct OrtEnv OrtEnv;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtSession OrtSession;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtStatus OrtStatus; // null: success
typedef struct OrtValue OrtValue;

// In the header, OrtApi is a struct of function pointers. New releases of onnxruntime add functions
// only at the end of the struct, so the position of a function in the struct never changes.
typedef void (*OrtFunction)(void);

typedef struct OrtApiBase {
  const OrtFunction *(*GetApi)(uint32_t version);
  const char *(*GetVersionString)(void);
} OrtApiBase;

const OrtApiBase *OrtGetApiBase(void);

enum { API_VERSION = 18, FATAL = 4, ARENA_ALLOCATOR = 1, DEFAULT_MEMORY = 0, FLOAT = 1, INT64 = 7 };

static const OrtFunction *api;

// The functions of onnxruntime that this program uses. Each entry states the position in OrtApi,
// the name, the result type and the parameter types.
#define ORT_FUNCTIONS(F) \
  F(2, GetErrorMessage, const char *, (const OrtStatus *)) \
  F(3, CreateEnv, OrtStatus *, (int severity, const char *id, OrtEnv **)) \
  F(8, CreateSessionFromArray, OrtStatus *, \
    (const OrtEnv *, const void *model, size_t len, const OrtSessionOptions *, OrtSession **)) \
  F(9, Run, OrtStatus *, \
    (OrtSession *, const void *run_options, const char *const *input_names, \
     const OrtValue *const *inputs, size_t input_count, const char *const *output_names, \
     size_t output_count, OrtValue **outputs)) \
  F(10, CreateSessionOptions, OrtStatus *, (OrtSessionOptions **)) \
  F(49, CreateTensorWithDataAsOrtValue, OrtStatus *, \
    (const OrtMemoryInfo *, void *data, size_t bytes, const int64_t *shape, size_t rank, int type, OrtValue **)) \
  F(51, GetTensorMutableData, OrtStatus *, (OrtValue *, void **)) \
  F(69, CreateCpuMemoryInfo, OrtStatus *, (int allocator, int memory, OrtMemoryInfo **)) \
  F(92, ReleaseEnv, void, (OrtEnv *)) \
  F(93, ReleaseStatus, void, (OrtStatus *)) \
  F(94, ReleaseMemoryInfo, void, (OrtMemoryInfo *)) \
  F(95, ReleaseSession, void, (OrtSession *)) \
  F(96, ReleaseValue, void, (OrtValue *)) \
  F(100, ReleaseSessionOptions, void, (OrtSessionOptions *)) \
  F(228, RegisterCustomOpsLibrary_V2, OrtStatus *, (OrtSessionOptions *, const char *path))

#define DECLARE(place, name, result, parameters) \
  enum { PLACE_OF_##name = place }; \
  typedef result(*name##_type) parameters;
ORT_FUNCTIONS(DECLARE)

// ORT(Run)(session, ..) makes the same call as api->Run(session, ..) with the header.
#define ORT(name) ((name##_type)api[PLACE_OF_##name])

// A model with one node: output = ScatterND(data, indices, updates) with the reduction "add". Data
// has 3 rows of 2 floats. This Python code printed the bytes of the model:
//
//   from onnx import TensorProto, helper
//   info, real, whole = helper.make_tensor_value_info, TensorProto.FLOAT, TensorProto.INT64
//   node = helper.make_node("ScatterND", ["data", "indices", "updates"], ["output"], reduction="add")
//   inputs = [info("data", real, [3, 2]), info("indices", whole, ["n", 1]), info("updates", real, ["n", 2])]
//   graph = helper.make_graph([node], "scatter", inputs, [info("output", real, [3, 2])])
//   opset = helper.make_opsetid("", 18)
//   print(helper.make_model(graph, opset_imports=[opset], ir_version=9).SerializeToString())
static const char model[] =
    "\x08\x09:\xb5\x01\n@\n\x04" "data\n\x07indices\n\x07updates\x12\x06output\"\tScatterND"
    "*\x13\n\treduction\"\x03" "add\xa0\x01\x03\x12\x07scatter"
    "Z\x16\n\x04" "data\x12\x0e\n\x0c\x08\x01\x12\x08\n\x02\x08\x03\n\x02\x08\x02"
    "Z\x1a\n\x07indices\x12\x0f\n\r\x08\x07\x12\t\n\x03\x12\x01n\n\x02\x08\x01"
    "Z\x1a\n\x07updates\x12\x0f\n\r\x08\x01\x12\t\n\x03\x12\x01n\n\x02\x08\x02"
    "b\x18\n\x06output\x12\x0e\n\x0c\x08\x01\x12\x08\n\x02\x08\x03\n\x02\x08\x02"
    "B\x04\n\x00\x10\x12";

enum { MODEL_LEN = sizeof model - 1 }; // without the NUL at the end of the string

// Prints the error and exits with status 1 if a call failed. `call` is the name of the called
// function.
static void check(OrtStatus *status, const char *call) {
  if (status == NULL) return;
  fprintf(stderr, "%s: %s\n", call, ORT(GetErrorMessage)(status));
  ORT(ReleaseStatus)(status);
  exit(1);
}

static OrtSession *open_session(const OrtEnv *environment, const char *library) {
  OrtSessionOptions *options = NULL;
  check(ORT(CreateSessionOptions)(&options), "CreateSessionOptions");
  check(ORT(RegisterCustomOpsLibrary_V2)(options, library), "RegisterCustomOpsLibrary_V2");
  OrtSession *session = NULL;
  check(ORT(CreateSessionFromArray)(environment, model, MODEL_LEN, options, &session), "CreateSessionFromArray");
  ORT(ReleaseSessionOptions)(options);
  return session;
}

// Returns a tensor of 3 rows that uses the caller's memory `data`. This memory must outlive the
// tensor.
static OrtValue *tensor(const OrtMemoryInfo *memory, void *data, size_t bytes, int64_t columns, int type) {
  const int64_t shape[] = {3, columns};
  OrtValue *value = NULL;
  check(ORT(CreateTensorWithDataAsOrtValue)(memory, data, bytes, shape, 2, type, &value),
        "CreateTensorWithDataAsOrtValue");
  return value;
}

// Runs the model with data of 3 rows of zeros. The three updates are (1, 1), (10, 10) and
// (100, 100). `rows` contains the index of the destination row of each update. `output` receives
// the result.
static OrtStatus *add_rows(OrtSession *session, int64_t rows[3], float output[6]) {
  const char *const input_names[] = {"data", "indices", "updates"}, *const output_names[] = {"output"};
  float data[6] = {0}, updates[6] = {1, 1, 10, 10, 100, 100};
  OrtMemoryInfo *memory = NULL;
  check(ORT(CreateCpuMemoryInfo)(ARENA_ALLOCATOR, DEFAULT_MEMORY, &memory), "CreateCpuMemoryInfo");
  OrtValue *inputs[] = {tensor(memory, data, sizeof data, 2, FLOAT),
                        tensor(memory, rows, 3 * sizeof *rows, 1, INT64),
                        tensor(memory, updates, sizeof updates, 2, FLOAT)};

  OrtValue *result = NULL; // null: the host allocates it
  OrtStatus *status =
      ORT(Run)(session, NULL, input_names, (const OrtValue *const *)inputs, 3, output_names, 1, &result);
  if (status == NULL) {
    void *values = NULL;
    check(ORT(GetTensorMutableData)(result, &values), "GetTensorMutableData");
    memcpy(output, values, 6 * sizeof *output);
    ORT(ReleaseValue)(result);
  }
  for (int i = 0; i < 3; i++) ORT(ReleaseValue)(inputs[i]);
  ORT(ReleaseMemoryInfo)(memory);
  return status;
}

// The index -1 means the last row, which is row 2. Two updates are therefore added to row 2.
static int adds_rows(OrtSession *session) {
  const float expected[6] = {1, 1, 0, 0, 110, 110};
  float output[6];
  check(add_rows(session, (int64_t[]){0, 2, -1}, output), "Run");
  printf("output:");
  for (int i = 0; i < 6; i++) printf(" %g", (double)output[i]);
  printf("\n");
  return memcmp(output, expected, sizeof expected) == 0;
}

// Checks that the run fails for an index out of bounds. The prefix "ndscatter:" of the error
// message shows that ndscatter's library ran the node, not the built-in kernel of onnxruntime.
static int refuses_row_3(OrtSession *session) {
  float output[6];
  OrtStatus *status = add_rows(session, (int64_t[]){0, 3, 1}, output);
  if (status == NULL) return 0;
  const char *message = ORT(GetErrorMessage)(status);
  printf("refused: %s\n", message);
  const int from_library = strstr(message, "ndscatter:") != NULL;
  ORT(ReleaseStatus)(status);
  return from_library;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s /path/to/libndscatter_onnxruntime.so\n", argv[0]);
    return 2;
  }
  api = OrtGetApiBase()->GetApi(API_VERSION);
  if (api == NULL) {
    fprintf(stderr, "onnxruntime %s is too old; use 1.%d or newer\n", OrtGetApiBase()->GetVersionString(), API_VERSION);
    return 1;
  }
  printf("onnxruntime %s\n", OrtGetApiBase()->GetVersionString());

  OrtEnv *environment = NULL;
  // onnxruntime logs only fatal errors, because its functions return all errors to this program.
  check(ORT(CreateEnv)(FATAL, "session", &environment), "CreateEnv");
  OrtSession *session = open_session(environment, argv[1]);
  const int works = adds_rows(session) && refuses_row_3(session);
  ORT(ReleaseSession)(session);
  ORT(ReleaseEnv)(environment);
  if (!works) fprintf(stderr, "the results differ from the expected results\n");
  return works ? 0 : 1;
}
