// Runs a model of OpenVINO on ndscatter: session-cpp EXTENSION MODEL
//
// MODEL is model.xml of this folder: it adds rows to a table at the positions of an index.

#include <algorithm>
#include <iostream>
#include <openvino/openvino.hpp>

int main(int count, char** arguments) {
    if (count != 3) {
        std::cerr << "usage: " << arguments[0] << " EXTENSION MODEL\n";
        return 2;
    }
    ov::Core core;
    core.add_extension(std::string(arguments[1]));
    auto request = core.compile_model(std::string(arguments[2]), "CPU").create_infer_request();
    auto fill = [&](const char* name, float value) {
        auto tensor = request.get_tensor(name);
        std::fill_n(tensor.data<float>(), tensor.get_size(), value);
    };
    fill("data", 0);
    fill("updates", 1);
    int32_t* rows = request.get_tensor("indices").data<int32_t>();
    std::copy_n(std::initializer_list<int32_t>{5, 7, 5}.begin(), 3, rows);
    request.infer();
    const float* result = request.get_output_tensor().data<float>();
    std::cout << "rows 5, 6, 7: " << result[5 * 64] << ' ' << result[6 * 64] << ' ' << result[7 * 64] << '\n';

    rows[1] = 4096;
    try {
        request.infer();
    } catch (const std::exception& error) {
        const std::string text = error.what();
        std::cout << text.substr(text.find("ndscatter:")) << '\n';
    }
    return 0;
}
