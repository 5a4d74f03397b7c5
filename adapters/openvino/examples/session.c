/* Runs a model of OpenVINO on ndscatter: session-c EXTENSION MODEL
 *
 * MODEL is model.xml of this folder: it adds rows to a table at the positions of an index. */

#include <openvino/c/openvino.h>
#include <stdio.h>
#include <stdlib.h>

static void check(ov_status_e status) {
    if (status != OK) {
        fprintf(stderr, "%s\n", ov_get_last_err_msg());
        exit(1);
    }
}

static void* memory(const ov_infer_request_t* request, const char* name, size_t* size) {
    ov_tensor_t* tensor;
    void* data;
    check(ov_infer_request_get_tensor(request, name, &tensor));
    check(ov_tensor_get_size(tensor, size));
    check(ov_tensor_data(tensor, &data));
    ov_tensor_free(tensor);
    return data;
}

int main(int count, char** arguments) {
    if (count != 3) {
        fprintf(stderr, "usage: %s EXTENSION MODEL\n", arguments[0]);
        return 2;
    }
    ov_core_t* core;
    ov_compiled_model_t* model;
    ov_infer_request_t* request;
    check(ov_core_create(&core));
    check(ov_core_add_extension(core, arguments[1]));
    check(ov_core_compile_model_from_file(core, arguments[2], "CPU", 0, &model));
    check(ov_compiled_model_create_infer_request(model, &request));

    size_t size, number;
    float* data = memory(request, "data", &size);
    for (number = 0; number < size; number++) data[number] = 0;
    float* updates = memory(request, "updates", &size);
    for (number = 0; number < size; number++) updates[number] = 1;
    int32_t* rows = memory(request, "indices", &size);
    rows[0] = 5, rows[1] = 7, rows[2] = 5;
    check(ov_infer_request_infer(request));
    const float* result = memory(request, "result", &size);
    printf("rows 5, 6, 7: %g %g %g\n", result[5 * 64], result[6 * 64], result[7 * 64]);

    rows[1] = 4096;
    if (ov_infer_request_infer(request) != OK) printf("%s", ov_get_last_err_msg());

    ov_infer_request_free(request);
    ov_compiled_model_free(model);
    ov_core_free(core);
    return 0;
}
